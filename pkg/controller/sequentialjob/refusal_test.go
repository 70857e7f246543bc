// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgotesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

func TestRefusedCreations(t *testing.T) {
	terminating := apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errRefused)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), "etl-0",
		field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image"), "")})
	for name, tc := range map[string]struct {
		err     error
		want    string
		wantErr bool
	}{
		"a quota that is used up": {apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New("exceeded quota: q")), "ResourcesUnavailable QuotaExceeded", true},
		"a webhook that is away": {apierrors.NewInternalError(errors.New(`failed calling webhook "mjob.kb.io": failed to call webhook: connection refused`)),
			"", true},
		"an API that fails":                  {apierrors.NewInternalError(errRefused), "", true},
		"an API without an answer":           {errRefused, "", true},
		"an API that asks for a later retry": {apierrors.NewTooManyRequests("later", 1), "", true},
		"an invalid Job":                     {invalid, "Available JobCreationFailed", true},
		"a missing permission": {
			apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New(`User "x" cannot create resource "jobs"`)), "Available JobCreationFailed", true,
		},
		"a namespace that is being deleted": {terminating, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSequence())
			refuse(r.kube, "create", "jobs", tc.err)
			if err := r.syncs(t, 2); (err != nil) != tc.wantErr {
				t.Errorf("error %v", err)
			}
			var got string
			for _, c := range r.sequence(t).Status.Conditions {
				if bad := c.Type != batchv1alpha1.ConditionAvailable && c.Type != batchv1alpha1.ConditionProgressing; bad == (c.Status == metav1.ConditionTrue) {
					got = fmt.Sprintf("%s %s", c.Type, c.Reason)
				}
			}
			diff(t, "the condition", tc.want, got)
		})
	}
}

func TestForeignNames(t *testing.T) {
	r := newRig(t, newSequence(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: "ns", UID: "x"}})
	if err := r.syncs(t, 2); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionAvailable)
	diff(t, "the reason", batchv1alpha1.ReasonNameConflict, c.Reason)
}

func TestConflictsAreNoErrors(t *testing.T) {
	sj := newSequence(started, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = new(bool); *sj.Spec.Suspend = true })
	r := newRig(t, sj, jobOf(sj))
	refuse(r.kube, "patch", "jobs", apierrors.NewConflict(batchv1.Resource("jobs"), "etl-0", errRefused))
	if err := r.syncs(t, 1); !apierrors.IsConflict(err) {
		t.Errorf("error %v is no conflict", err)
	}
	if c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionFailed); c != nil {
		t.Errorf("condition %+v", c)
	}
}

// TestRefusalsAreReported checks that a sequence that ends or goes says what the API refuses, although no condition of it does.
func TestRefusalsAreReported(t *testing.T) {
	ended := func(sj *batchv1alpha1.SequentialJob) {
		cancelled(sj)
		sj.Status.CompletionTime = &metav1.Time{}
	}
	unlabelled := func(job *batchv1.Job) { delete(job.Labels, batchv1alpha1.SequentialJobUIDKey) }
	for name, tc := range map[string]struct {
		change         func(*batchv1alpha1.SequentialJob)
		ofJob          func(*batchv1.Job)
		aggregated     bool
		verb, resource string
		// err is what the API says, if that matters.
		err error
		// passes means that the refusal may pass, so that it is reported if it stays.
		passes bool
	}{
		"the child of a deleted sequence is not deleted":   {change: deleted, verb: "delete", resource: "jobs", passes: true},
		"the child of a cancelled sequence is not deleted": {change: ended, verb: "delete", resource: "jobs", passes: true},
		"a webhook denies the deletion of the child":       {change: ended, verb: "delete", resource: "jobs", err: errDenied},
		"the finalizer is not removed": {change: deleted, ofJob: func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, aggregated: true, verb: "patch", resource: "sequentialjobs", passes: true},
		"a label is not put back":  {change: func(*batchv1alpha1.SequentialJob) {}, ofJob: unlabelled, verb: "patch", resource: "jobs", passes: true},
		"the status is not stored": {change: suspended, aggregated: true, verb: "update", resource: "sequentialjobs", passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			sj := newSequence(started, tc.change)
			job := jobOf(sj)
			if tc.ofJob != nil {
				tc.ofJob(job)
			}
			now := testclock.NewFakePassiveClock(time.Now())
			r := newRigAt(t, now, sj, job)
			err := cmp.Or(tc.err, errRefused)
			if tc.aggregated {
				refuse(r.client, tc.verb, tc.resource, err)
			} else {
				refuse(r.kube, tc.verb, tc.resource, err)
			}
			if err := r.syncs(t, 1); err == nil {
				t.Error("no error")
			}
			if tc.passes {
				if events := r.events.all(); slices.ContainsFunc(events, isFailure) {
					t.Errorf("events at the first refusal: %q", events)
				}
				now.SetTime(now.Now().Add(hostplan.PassesAfter))
				if err := r.syncs(t, 1); err == nil {
					t.Error("no error")
				}
			}
			if events := r.events.all(); !slices.ContainsFunc(events, isFailure) {
				t.Errorf("no warning: %q", events)
			}
		})
	}
}

func isFailure(event string) bool {
	return strings.HasPrefix(event, "Warning ReconciliationFailed Failed to reconcile: ")
}

// TestRefusalsThatPassAreNotReported rejects some status updates and accepts others, over a longer time than the one
// after which repeated failures are reported.
func TestRefusalsThatPassAreNotReported(t *testing.T) {
	now := testclock.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSequence(started, suspended))
	fail := true
	r.client.PrependReactor("update", "sequentialjobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return fail, nil, errRefused
	})
	for range 3 {
		fail = true
		if err := r.syncs(t, 1); err == nil {
			t.Error("no error")
		}
		fail = false
		if err := r.syncs(t, 2); err != nil {
			t.Error(err)
		}
		now.SetTime(now.Now().Add(hostplan.PassesAfter))
		sj := r.sequence(t).DeepCopy()
		sj.Generation++ // there is something to store again
		if err := r.client.Tracker().Update(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs"), sj, sj.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	for _, event := range r.events.all() {
		if strings.Contains(event, "ReconciliationFailed") {
			t.Errorf("event %q", event)
		}
	}
}

func suspended(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }

// TestRefusedChangesEndThePass has many children of which none may be deleted or suspended. The controller does not ask for each of them.
func TestRefusedChangesEndThePass(t *testing.T) {
	const n = 50
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"a missing permission": {apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New(`User "x" cannot patch resource "jobs" in API group "batch"`)), 1},
		"a webhook":            {apierrors.NewForbidden(batchv1.Resource("jobs"), "etl-0", errors.New(`admission webhook "w" denied the request: no`)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSequence())
			refuse(r.kube, "delete", "jobs", tc.err)
			refuse(r.kube, "patch", "jobs", tc.err)
			a := &applier{Syncer: r.Syncer, sj: r.sequence(t)}
			var deletions []plan.Deletion
			var patches []plan.SuspendPatch
			for i := range n {
				ref := plan.ChildRef{Kind: batchv1alpha1.StepKindJob, Name: fmt.Sprintf("etl-%d", i), UID: types.UID(fmt.Sprint(i))}
				deletions = append(deletions, plan.Deletion{ChildRef: ref})
				patches = append(patches, plan.SuspendPatch{ChildRef: ref, ResourceVersion: "1", Suspend: true})
			}
			for what, change := range map[string]func() error{
				"deletions": func() error { return a.delete(t.Context(), deletions) }, "patches": func() error { return a.suspend(t.Context(), patches) },
			} {
				before := len(r.kube.Actions())
				if err := change(); err == nil {
					t.Errorf("%s: no error", what)
				}
				diff(t, "requests for "+what, tc.want, len(r.kube.Actions())-before)
			}
		})
	}
}
