// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// noteFailure sends a warning about what no condition shows, if passes have failed for some time. That something has
// changed meanwhile is no failure.
func (s *Syncer) noteFailure(ctx context.Context, sj *batchv1alpha1.SequentialJob, err error) {
	if err == nil || apierrors.IsConflict(err) {
		return
	}
	now := s.deps.Clock.Now()
	if since := children.Since(s.failing, cache.MetaObjectToName(sj), true, now); now.Sub(since) >= hostplan.PassesAfter {
		s.Report(ctx, sj, host.Report{Event: plan.Failure(err.Error())})
	}
}
