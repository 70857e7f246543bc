// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

var errDenied = apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New(`admission webhook "w" denied the request: no`))

// TestFailuresThatPass has writes that fail although the API does not deny them.
func TestFailuresThatPass(t *testing.T) {
	for name, failure := range map[string]error{
		"500": apierrors.NewInternalError(errRefused), "503": apierrors.NewServiceUnavailable("starting"), "no connection": errRefused,
	} {
		for what, tc := range map[string]struct {
			change         func(*batchv1alpha1.SequentialJob)
			verb, resource string
			aggregated     bool
		}{
			"the child is not created":   {verb: "create", resource: "jobs"},
			"the child is not suspended": {change: func(sj *batchv1alpha1.SequentialJob) { started(sj); suspended(sj) }, verb: "patch", resource: "jobs"},
			"the finalizer is not added": {verb: "patch", resource: "sequentialjobs", aggregated: true},
			"the child of a deleted sequence is not deleted": {
				change: func(sj *batchv1alpha1.SequentialJob) { started(sj); deleted(sj) }, verb: "delete", resource: "jobs",
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				now := testclock.NewFakePassiveClock(time.Now())
				sj := newSequence()
				var owned []runtime.Object
				if tc.change != nil {
					tc.change(sj)
					owned = append(owned, jobOf(sj))
				}
				r := newRigAt(t, now, sj, owned...)
				client := &r.kube.Fake
				if tc.aggregated {
					client = &r.client.Fake
				}
				client.PrependReactor(tc.verb, tc.resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, failure })
				shown := func() (all []string) {
					if c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionFailed); c != nil {
						all = append(all, string(c.Status)+" "+c.Reason)
					}
					for _, e := range r.events.all() {
						if strings.Contains(e, "ReconciliationFailed") {
							all = append(all, "event")
						}
					}
					return all
				}
				passes := func() {
					t.Helper()
					if err := r.syncs(t, 2); err == nil {
						t.Fatal("no error")
					}
				}
				passes()
				diff(t, "what is shown at once", []string(nil), shown())
				now.SetTime(now.Now().Add(hostplan.PassesAfter - time.Second))
				passes()
				diff(t, "what is shown while it may pass", []string(nil), shown())
				now.SetTime(now.Now().Add(time.Second))
				if err := r.syncs(t, 1); err == nil {
					t.Fatal("no error")
				}
				want := []string{"True ReconciliationError", "event"}
				if sj.DeletionTimestamp != nil {
					want = []string{"event"}
				}
				diff(t, "what is shown of a failure that stays", want, shown())
			})
		}
	}
}
