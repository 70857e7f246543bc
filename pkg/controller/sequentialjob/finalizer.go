// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

func (a *applier) addFinalizer(ctx context.Context) error {
	ctx, end := children.Finishing(ctx)
	defer end()
	stored, err := a.setFinalizers(ctx, a.sj, added, append(slices.Clone(a.sj.Finalizers), batchv1alpha1.SequentialJobFinalizer))
	if err != nil {
		return fmt.Errorf("adding the finalizer to sequentialjob %s/%s: %w", a.sj.Namespace, a.sj.Name, err)
	}
	a.results.ResourceVersion = stored.ResourceVersion
	return nil
}

// removeFinalizer lets a sequence go. One that is gone is no error.
func (s *Syncer) removeFinalizer(ctx context.Context, sj *batchv1alpha1.SequentialJob) error {
	ctx, end := children.Finishing(ctx)
	defer end()
	others := slices.DeleteFunc(slices.Clone(sj.Finalizers), func(f string) bool { return f == batchv1alpha1.SequentialJobFinalizer })
	if _, err := s.setFinalizers(ctx, sj, removed, others); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer from sequentialjob %s/%s: %w", sj.Namespace, sj.Name, err)
	}
	return nil
}

// What is done to the finalizer of a sequence.
const added, removed = "added", "removed"

// theFinalizers is what another party may change back.
const theFinalizers = "metadata.finalizers"

// setFinalizers replaces the finalizers of one version of a sequence, unless another party changes them back each time.
func (s *Syncer) setFinalizers(ctx context.Context, sj *batchv1alpha1.SequentialJob, done string,
	finalizers []string) (*batchv1alpha1.SequentialJob, error) {
	if err := s.finalizers.ChangingTo(sj, sj, theFinalizers, done); err != nil {
		return nil, err
	}
	body, err := json.Marshal([]children.Operation{
		children.Set("/metadata/resourceVersion", sj.ResourceVersion), children.Set("/metadata/finalizers", finalizers),
	})
	if err != nil {
		return nil, err
	}
	var stored *batchv1alpha1.SequentialJob
	what := children.Request{Verb: "patch", Resource: resourceSequentialJobs, Name: sj.Name, UID: sj.UID}
	err = s.denials.Do(sj, what, func() error {
		stored, err = s.deps.SequentialJobs(sj.Namespace).Patch(ctx, sj.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		s.noteAnswer(cache.MetaObjectToName(sj), err)
		return nil, err
	}
	s.finalizers.ChangedTo(sj, sj, theFinalizers, done)
	s.deps.Consistency.Wrote(cache.MetaObjectToName(sj), resourceSequentialJobs, stored.ResourceVersion)
	return stored, nil
}
