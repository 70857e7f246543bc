// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The summary of a sequence has the reason and the message of one condition, whichever keeps the sequence from running.
func TestMessagesOfSequences(t *testing.T) {
	var cases []metav1.Condition
	for _, trouble := range helper.Troubles() {
		cases = append(cases, metav1.Condition{Type: trouble.Condition, Status: trouble.Status, Reason: batchv1alpha1.ReasonReconciliationError})
	}
	cases = append(cases, metav1.Condition{Type: batchv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonWaitingForPods})
	for _, c := range cases {
		c.Message = "the message of " + c.Type
		sj := &batchv1alpha1.SequentialJob{Status: batchv1alpha1.SequentialJobStatus{Conditions: []metav1.Condition{c}}}
		if got := snapshot.SummarizeSequence(sj); got.Reason != c.Reason || got.Message != c.Message {
			t.Errorf("%s %s: %s: %s", c.Type, c.Status, got.Reason, got.Message)
		}
	}
}
