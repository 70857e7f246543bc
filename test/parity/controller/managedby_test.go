// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// managedElsewhere leaves the set to another controller. Upstream's tests use a value without a domain, which its webhook would refuse.
func managedElsewhere(js *jobSet) { js.Spec.ManagedBy = ptr.To("example.com/other-controller") }

func TestRow7_3_33_SetOfAnotherControllerIsLeftAlone(t *testing.T) {
	for name, start := range map[string]func(*jobSet){"running": func(*jobSet) {}, "suspended": suspend} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, released)
			e.create(testJobSet(managedElsewhere, start))
			written := e.writeAsOther()
			e.leftAlone(written)
			if name == "suspended" {
				e.update(resume)
				e.leftAlone(written)
			}
			e.update(suspend)
			e.leftAlone(written)
		})
	}
	t.Run("its time to live counts", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet(managedElsewhere, func(js *jobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](2) }))
		e.leftAlone(e.writeAsOther())
		e.updateStatus(func(js *jobSet) {
			meta.SetStatusCondition(&js.Status.Conditions, metav1.Condition{
				Type: jobsetv1alpha2.JobSetCompleted, Status: metav1.ConditionTrue, Reason: "OtherSaysSo", Message: "written by another controller",
			})
		})
		e.awaitDeleted()
		e.livedAfterItsEnd(jobsetv1alpha2.JobSetCompleted, 2)
	})
}

// writeAsOther writes a status as the other controller would, and returns it.
func (e *env) writeAsOther() jobsetv1alpha2.JobSetStatus {
	e.Helper()
	return e.updateStatus(func(js *jobSet) {
		js.Status.Restarts = 7
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: groupA, Failed: 5}}
		for _, c := range []metav1.Condition{
			{Type: "example.com/Placed", Status: metav1.ConditionTrue, Reason: "Placed", Message: "in cluster 3"},
			{Type: jobsetv1alpha2.JobSetSuspended, Status: metav1.ConditionFalse, Reason: "OtherSaysSo", Message: "runs elsewhere"},
		} {
			meta.SetStatusCondition(&js.Status.Conditions, c)
		}
	})
}

func (e *env) updateStatus(change func(*jobSet)) jobsetv1alpha2.JobSetStatus {
	e.Helper()
	js := e.get()
	change(js)
	written, err := e.sets.UpdateStatus(e.Context(), js, metav1.UpdateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return written.Status
}

// leftAlone makes sure that nothing is made for the set, and nothing is written to its status.
func (e *env) leftAlone(written jobsetv1alpha2.JobSetStatus) {
	e.Helper()
	e.stays(func() string {
		if got := e.names(live); len(got) != 0 {
			return fmt.Sprintf("there are Jobs: %v", got)
		}
		if diff := cmp.Diff(written, e.get().Status); diff != "" {
			return fmt.Sprintf("status (-written +now):\n%s", diff)
		}
		return ""
	})
	if _, err := e.stack.Kube.CoreV1().Services(e.namespace).Get(e.Context(), setName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		e.Errorf("getting the Service: %v, want that it is not found", err)
	}
}
