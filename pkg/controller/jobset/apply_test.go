// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

var errRefused = errors.New("refused")

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns"}}
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

func namespaceTerminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "js-w-0", errRefused)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestApply(t *testing.T) {
	set := newSet()
	status := &jobsetv1alpha2.JobSetStatus{Restarts: 1}
	event := plan.Event{Type: "Normal", Reason: "R", Note: "note with 100%"}
	full := plan.Plan{
		Status: status, Events: []plan.Event{event}, CreateService: service(), CreateClaims: []*corev1.PersistentVolumeClaim{claim("a"), claim("b")},
		CreateJobs: []*batchv1.Job{newJob("js-w-0", set), newJob("js-w-1", set)},
		DeleteJobs: []plan.JobRef{{Name: "old", UID: "uid-old"}},
		PatchJobs:  []plan.JobPatch{{JobRef: plan.JobRef{Name: "active"}, ResourceVersion: "5", Suspend: ptr.To(true)}},
	}
	jobs := plan.Plan{Status: status, Events: []plan.Event{event}, CreateJobs: full.CreateJobs}
	stored := "Normal R Reconciling: note with 100%"
	const refused = `2 jobs could not be created: job "js-w-0" creation failed with error: refused`
	const taken = "Warning NameConflict Reconciling: a job named js-w-0 already exists and does not belong to the jobset; the jobset creates its own once that job is deleted"
	other := newSet()
	other.UID = "uid-other"
	for name, tc := range map[string]struct {
		plan         plan.Plan
		children     []runtime.Object
		prepare      func(*rig)
		wantRequests []string
		wantEvents   []string
		wantError    string
		wantRestarts int32
	}{
		"deletions come first, what Jobs need before the Jobs, and the event after the status": {
			plan: full, children: []runtime.Object{newJob("old", set), newJob("active", set)},
			wantRequests: []string{"delete jobs old", "patch jobs active", "create services js", "create persistentvolumeclaims a",
				"create persistentvolumeclaims b", "create jobs js-w-0", "create jobs js-w-1"},
			wantEvents: []string{stored}, wantRestarts: 1,
		},
		"the status is written even if a Job was refused": {
			plan: jobs, prepare: func(r *rig) { r.refuse("create", "jobs", "", errRefused) },
			wantRequests: []string{"create jobs js-w-0"},
			wantEvents:   []string{"Warning JobCreationFailed Reconciling: " + refused, stored},
			wantError:    refused, wantRestarts: 1,
		},
		"errors of several kinds are all told": {
			plan: full,
			prepare: func(r *rig) {
				r.refuse("delete", "jobs", "", errRefused)
				r.refuse("patch", "jobs", "", errRefused)
				r.refuse("create", "jobs", "js-w-0", errRefused)
			},
			wantRequests: []string{"delete jobs old", "patch jobs active", "create services js", "create persistentvolumeclaims a",
				"create persistentvolumeclaims b", "create jobs js-w-0"},
			wantEvents: []string{"Warning JobCreationFailed Reconciling: " + refused, stored},
			wantError:  "deleting job ns/old: refused\npatching job ns/active: refused\n" + refused, wantRestarts: 1,
		},
		"no Job is created without the Service": {
			plan: full, children: []runtime.Object{newJob("active", set)}, prepare: func(r *rig) { r.refuse("create", "services", "", errRefused) },
			wantRequests: []string{"delete jobs old", "patch jobs active", "create services js", "create persistentvolumeclaims a", "create persistentvolumeclaims b"},
			wantEvents:   []string{"Warning HeadlessServiceCreationFailed Reconciling: refused", stored},
			wantError:    "creating service ns/js: refused", wantRestarts: 1,
		},
		"every claim is tried, and no Job is created without them": {
			plan: full, children: []runtime.Object{newJob("active", set)}, prepare: func(r *rig) { r.refuse("create", "persistentvolumeclaims", "a", errRefused) },
			wantRequests: []string{"delete jobs old", "patch jobs active", "create services js", "create persistentvolumeclaims a", "create persistentvolumeclaims b"},
			wantEvents:   []string{"Warning PVCCreationFailed Reconciling: refused", stored},
			wantError:    "creating persistent volume claim ns/a: refused", wantRestarts: 1,
		},
		"a Service and claims that exist are taken as they are": {
			plan:     plan.Plan{CreateService: service(), CreateClaims: full.CreateClaims, CreateJobs: full.CreateJobs},
			children: []runtime.Object{service(), claim("a")},
			wantRequests: []string{"create services js", "create persistentvolumeclaims a", "create persistentvolumeclaims b",
				"create jobs js-w-0", "create jobs js-w-1"},
		},
		"a Job of the set that exists is no error": {
			plan: jobs, children: []runtime.Object{newJob("js-w-0", set)},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"}, wantEvents: []string{stored}, wantRestarts: 1,
		},
		"the name of a Job of another set of the same name is waited for, and the other Jobs are created": {
			plan: jobs, children: []runtime.Object{newJob("js-w-0", other)},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
			wantEvents:   []string{stored, taken}, wantRestarts: 1,
		},
		"a Job of nobody is not adopted": {
			plan: jobs, children: []runtime.Object{newJob("js-w-0", nil)},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
			wantEvents:   []string{stored, taken}, wantRestarts: 1,
		},
		"a taken name is stored even if there is nothing else to store": {
			plan: plan.Plan{CreateJobs: full.CreateJobs}, children: []runtime.Object{newJob("js-w-0", nil)},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
			wantEvents:   []string{taken},
		},
		"a name that becomes free while its Job is looked at is tried again without noise": {
			plan: jobs, prepare: func(r *rig) {
				r.refuse("create", "jobs", "js-w-0", apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, "js-w-0"))
			},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
			wantEvents:   []string{stored}, wantRestarts: 1,
		},
		"a namespace that is being deleted makes no noise": {
			plan: jobs, prepare: func(r *rig) { r.refuse("create", "jobs", "", namespaceTerminating()) },
			wantRequests: []string{"create jobs js-w-0"}, wantEvents: []string{stored}, wantRestarts: 1,
		},
		"a Job that is gone need not be deleted nor patched": {
			plan:         plan.Plan{DeleteJobs: full.DeleteJobs, PatchJobs: full.PatchJobs},
			wantRequests: []string{"delete jobs old", "patch jobs active"},
		},
		"a conflict is left to the next pass": {
			plan: plan.Plan{DeleteJobs: full.DeleteJobs},
			prepare: func(r *rig) {
				r.refuse("delete", "jobs", "", apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "old", errRefused))
			},
			wantRequests: []string{"delete jobs old"},
			wantError:    `deleting job ns/old: Operation cannot be fulfilled on jobs "old": refused`,
		},
		"nothing is reported of a status that was refused": {
			plan: jobs,
			prepare: func(r *rig) {
				r.jobSets.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, errRefused })
			},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
			wantError:    "updating status of jobset ns/js: refused",
		},
		"a set that is gone needs no status": {
			plan: jobs,
			prepare: func(r *rig) {
				if err := r.jobSets.Tracker().Delete(jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets"), "ns", "js"); err != nil {
					panic(err)
				}
			},
			wantRequests: []string{"create jobs js-w-0", "create jobs js-w-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set, tc.children...)
			r.deps.Runner = children.NewSlowStart(1) // for an order that does not change
			if tc.prepare != nil {
				tc.prepare(r)
			}
			err := r.apply(t, set, tc.plan)
			diff(t, "error", tc.wantError, errorText(err))
			diff(t, "requests", tc.wantRequests, r.requests())
			diff(t, "events", tc.wantEvents, r.events.all())
			if stored, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Get(t.Context(), "js", metav1.GetOptions{}); err == nil {
				diff(t, "restarts stored", tc.wantRestarts, stored.Status.Restarts)
			}
		})
	}
}

func TestApplyIsIdempotent(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	p := plan.Plan{CreateService: service(), CreateJobs: []*batchv1.Job{newJob("js-w-0", set), newJob("js-w-1", set)}}
	for range 2 {
		if err := r.apply(t, set, p); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := r.kube.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "number of Jobs", 2, len(jobs.Items))
	diff(t, "events", []string(nil), r.events.all())
}

func TestDeletionsHaveUIDPreconditions(t *testing.T) {
	set := newSet()
	r := newRig(t, set, newJob("old", set))
	p := plan.Plan{DeleteJobs: []plan.JobRef{{Name: "old", UID: "uid-old"}}, Status: &jobsetv1alpha2.JobSetStatus{Restarts: 3}, DeleteJobSet: true}
	r.jobSets.PrependReactor("update", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		stored := action.(clientgotesting.UpdateAction).GetObject().DeepCopyObject().(*jobsetv1alpha2.JobSet)
		stored.ResourceVersion = "2"
		return true, stored, nil
	})
	if err := r.apply(t, set, p); err != nil {
		t.Fatal(err)
	}
	options := func(actions []clientgotesting.Action) (out []metav1.DeleteOptions) {
		for _, action := range actions {
			if a, ok := action.(clientgotesting.DeleteActionImpl); ok {
				out = append(out, a.GetDeleteOptions())
			}
		}
		return out
	}
	want := metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationForeground), Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("uid-old"))},
	}
	diff(t, "deletion of the Job", []metav1.DeleteOptions{want}, options(r.kube.Actions()))
	want.Preconditions = &metav1.Preconditions{UID: ptr.To(types.UID("uid-js")), ResourceVersion: ptr.To("2")}
	diff(t, "deletion of the set, as its status write has left it", []metav1.DeleteOptions{want}, options(r.jobSets.Actions()))
}

func TestRejectedResourcesAreReportedWithTheirCause(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "job", nil)
	resources := &plan.Directives{Resources: []plan.ContainerResources{{}}}
	for name, tc := range map[string]struct {
		directives *plan.Directives
		err        error
		want       []string
	}{
		"a refusal of resources": {resources, invalid, []string{`Warning FailedResourcePropagation Reconciling: job "job" cannot get the resources ` +
			`of its template; the main cluster must have the feature gate MutablePodResourcesForSuspendedJobs: patching job ns/job: Job.batch "job" is invalid`}},
		"a refusal of other directives": {&plan.Directives{}, invalid, nil},
		"an error of the server":        {resources, errRefused, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet(), newJob("job", newSet()))
			r.refuse("patch", "jobs", "", tc.err)
			patch := plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(false), Directives: tc.directives}
			if err := r.apply(t, newSet(), plan.Plan{PatchJobs: []plan.JobPatch{patch}}); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			diff(t, "events", tc.want, r.events.all())
		})
	}
}

func TestFinishedSetsAreCountedOnceTheirEndIsStored(t *testing.T) {
	failedTotal.Reset()
	set := newSet()
	set.Name = "counted"
	value := func() float64 {
		v, err := testutil.GetCounterMetricValue(failedTotal.WithLabelValues("counted", "ns"))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	r := newRig(t, set)
	p := plan.Plan{Status: &jobsetv1alpha2.JobSetStatus{TerminalState: jobsetv1alpha2.TerminalStateFailed}}
	refuse := true
	r.jobSets.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) { return refuse, nil, errRefused })
	if err := r.apply(t, set, p); err == nil {
		t.Fatal("the status was not refused")
	}
	diff(t, "count after a refused write", 0.0, value())
	refuse = false
	if err := r.apply(t, set, p); err != nil {
		t.Fatal(err)
	}
	diff(t, "count after the write", 1.0, value())
	finished := set.DeepCopy()
	finished.Status = *p.Status
	p.Status = &jobsetv1alpha2.JobSetStatus{TerminalState: jobsetv1alpha2.TerminalStateFailed, Restarts: 1}
	if err := r.apply(t, finished, p); err != nil {
		t.Fatal(err)
	}
	diff(t, "count after a later write", 1.0, value())
}
