// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestNamesOfJobSets has a JobSet of a user under the name of the one that a step needs.
func TestNamesOfJobSets(t *testing.T) {
	r := newRig(t, newSequence(func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.Containers, sj.Spec.Steps = nil, []batchv1alpha1.SequentialJobStep{{Name: "a", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}}
	}))
	other := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: "ns", UID: "other"}}
	if err := r.client.Tracker().Add(other); err != nil {
		t.Fatal(err)
	}
	if err := r.syncs(t, 2); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionAvailable)
	if c == nil {
		t.Fatal("the sequence does not say whether it is available")
	}
	diff(t, "the status", metav1.ConditionFalse, c.Status)
	diff(t, "the reason", batchv1alpha1.ReasonNameConflict, c.Reason)
	diff(t, "the message", "a JobSet named etl-0 already exists and does not belong to the sequence; job 0 starts once that one is deleted", c.Message)
}
