// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Claim gives a child its label back, without which no cache shows it. Where that is refused, the decision is made once more on
// what the API has of the child.
func (k loopKind) Claim(ctx context.Context, obs *plan.Observed, p plan.Plan) (again bool, err error) {
	if p.Relabel == nil {
		return false, nil
	}
	defer func() { k.noteFailure(ctx, obs.SequentialJob, err) }()
	live, _ := obs.Unseen.Get()
	if p.Relabel.Kind == batchv1alpha1.StepKindJobSet {
		_, err = putLabelBack(ctx, k.jobSets, obs.SequentialJob, &jobsetv1alpha2.JobSet{ObjectMeta: live.Meta})
	} else {
		_, err = putLabelBack(ctx, k.jobs, obs.SequentialJob, &batchv1.Job{ObjectMeta: live.Meta})
	}
	if apierrors.IsConflict(err) {
		return false, err
	}
	if live.Stripped = false; err != nil {
		obs.Children, obs.Stripped = append(slices.Clone(obs.Children), live.Child), refusalOf(err)
	}
	obs.Unseen = hostplan.Of(live)
	return true, nil
}

// putLabelBack gives a child the label back by which it is selected. Without it no cache shows the child.
func putLabelBack[T metav1.Object](ctx context.Context, w *children.Writer[T], sj *batchv1alpha1.SequentialJob,
	child T) (children.Result, error) {
	return w.Relabel(ctx, sj, child, selecting(sj))
}

// selecting returns the label by which the children of a sequence are selected.
func selecting(sj *batchv1alpha1.SequentialJob) map[string]string {
	return map[string]string{batchv1alpha1.SequentialJobUIDKey: string(sj.UID)}
}
