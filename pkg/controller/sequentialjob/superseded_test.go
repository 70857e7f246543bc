// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// TestSequenceChangesDuringAPass lets a sequence change once the first of several writes of a pass is made. No other write follows.
func TestSequenceChangesDuringAPass(t *testing.T) {
	for name, change := range map[string]func(*batchv1alpha1.SequentialJob){
		"it is deleted": func(sj *batchv1alpha1.SequentialJob) { sj.DeletionTimestamp = new(metav1.Now()) },
		"it is suspended": func(sj *batchv1alpha1.SequentialJob) {
			sj.Generation++
			sj.Spec.Suspend = new(true)
		},
		"a later step has begun": func(sj *batchv1alpha1.SequentialJob) { sj.Status.Progress.CurrentIndex = new(int32(1)) },
		"its step runs again":    func(sj *batchv1alpha1.SequentialJob) { sj.Status.Steps[0].Attempts++ },
		"it has ended":           func(sj *batchv1alpha1.SequentialJob) { sj.Status.State.Failed++ },
	} {
		t.Run(name, func(t *testing.T) {
			sj := newSequence(started)
			r := newRig(t, sj)
			r.cached(t)
			r.kube.PrependReactor("delete", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
				next := sj.DeepCopy()
				next.ResourceVersion = "2"
				change(next)
				return false, nil, r.caches.sequentialJobs.GetIndexer().Update(next)
			})
			old := plan.ChildRef{Kind: batchv1alpha1.StepKindJob, Name: "old", UID: "old"}
			r.Loop.Kind = decided{r.Loop.Kind, plan.Plan{
				Delete: []plan.Deletion{{ChildRef: old}}, Suspend: []plan.SuspendPatch{{ChildRef: old, ResourceVersion: "1"}},
				AddFinalizer: true, CreateJob: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etl-0"}},
			}}
			if _, err := r.Sync(t.Context(), key); err != nil {
				t.Error(err)
			}
			diff(t, "writes", []string{"delete jobs old Foreground old"}, r.written())
		})
	}
}

// decided is the kind with one plan for all that is observed.
type decided struct {
	Kind
	p plan.Plan
}

// Decide implements Kind.
func (d decided) Decide(plan.Observed) plan.Plan { return d.p }
