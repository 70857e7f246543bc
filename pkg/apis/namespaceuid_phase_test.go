// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	sequences "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsets "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	leaderworkersets "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// TestReasons: the columns of kubectl say why an object that is older than its namespace does not run.
func TestReasons(t *testing.T) {
	conditions := []metav1.Condition{{Type: namespaceuid.Condition, Status: metav1.ConditionTrue, Reason: namespaceuid.ReasonOlderThanNamespace, Message: "the message"}}
	js := &jobsetv1alpha2.JobSet{Status: jobsetv1alpha2.JobSetStatus{Conditions: conditions}}
	if reason, message := jobsets.Reason(js); reason != namespaceuid.ReasonOlderThanNamespace || message != "the message" {
		t.Errorf("of a JobSet: %q, %q", reason, message)
	}
	sj := &batchv1alpha1.SequentialJob{Status: batchv1alpha1.SequentialJobStatus{Conditions: conditions}}
	if reason := sequences.Reason(sj); reason != namespaceuid.ReasonOlderThanNamespace {
		t.Errorf("of a SequentialJob: %q", reason)
	}
	set := &leaderworkersetv1.LeaderWorkerSet{Status: leaderworkersetv1.LeaderWorkerSetStatus{Conditions: append([]metav1.Condition{
		{Type: leaderworkersetv1.ConditionAvailable, Status: metav1.ConditionTrue},
	}, conditions...)}}
	if phase, c := leaderworkersets.Phase(set); phase != leaderworkersets.PhasePending || c == nil || c.Reason != namespaceuid.ReasonOlderThanNamespace {
		t.Errorf("of a LeaderWorkerSet: %q, %+v", phase, c)
	}
}
