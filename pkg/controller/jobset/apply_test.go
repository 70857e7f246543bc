// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
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
	const refused = `2 jobs are not created: job "js-w-0" creation failed with error: refused`
	const taken = "Warning JobNameTaken Reconciling: a job named js-w-0 exists that the jobset does not own; the jobset gets its own once that one is gone"
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
		"a Job of ours that exists is no error": {
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

func TestApplyTwiceDoesWhatOnceDoes(t *testing.T) {
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

func TestDeletionsNameTheIncarnation(t *testing.T) {
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

func TestPatchesOfJobs(t *testing.T) {
	set := newSet()
	resume := plan.JobPatch{
		JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(false),
		Directives: &plan.Directives{Labels: map[string]string{"a": "1"}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}},
	}
	restart := resume
	restart.ClearStartTime = true
	const version = `{"op":"add","path":"/metadata/resourceVersion","value":"5"}`
	const directives = `{"op":"add","path":"/spec/suspend","value":false},` +
		`{"op":"add","path":"/spec/template/metadata/labels","value":{"a":"1"}},` +
		`{"op":"add","path":"/spec/template/metadata/annotations","value":null},` +
		`{"op":"add","path":"/spec/template/spec/nodeSelector","value":null},` +
		`{"op":"add","path":"/spec/template/spec/tolerations","value":null},` +
		`{"op":"add","path":"/spec/template/spec/schedulingGates","value":[{"name":"g"}]}`
	for name, tc := range map[string]struct {
		patch plan.JobPatch
		want  []string
	}{
		"suspending changes one field of the version that was observed": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(true)},
			want:  []string{`: [` + version + `,{"op":"add","path":"/spec/suspend","value":true}]`},
		},
		"resuming replaces all directives in the same write": {
			patch: resume,
			want:  []string{`: [` + version + `,` + directives + `]`},
		},
		"the start time goes first, and the rest is for the version that this makes": {
			patch: restart,
			want: []string{
				`status: [` + version + `,{"op":"remove","path":"/status/startTime"}]`,
				`: [{"op":"add","path":"/metadata/resourceVersion","value":"6"},` + directives + `]`,
			},
		},
		"annotations of the Job are set one by one": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Annotations: map[string]string{"b.c/d~e": "2", "a": ""}},
			want: []string{`: [` + version + `,{"op":"add","path":"/metadata/annotations/a","value":""},` +
				`{"op":"add","path":"/metadata/annotations/b.c~1d~0e","value":"2"}]`},
		},
		"a Job without annotations gets the map": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Annotations: map[string]string{"a": "1"}, Unannotated: true},
			want:  []string{`: [` + version + `,{"op":"add","path":"/metadata/annotations","value":{"a":"1"}}]`},
		},
		"resources are set by the place of the container": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Suspend: ptr.To(false), Directives: &plan.Directives{
				Labels: map[string]string{"a": "1"}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
				Resources: []plan.ContainerResources{
					{Init: true, Index: 1, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}},
					{Index: 0, Resources: corev1.ResourceRequirements{}},
				},
			}},
			want: []string{`: [` + version + `,` + directives +
				`,{"op":"add","path":"/spec/template/spec/initContainers/1/resources","value":{"limits":{"cpu":"2"}}}` +
				`,{"op":"add","path":"/spec/template/spec/containers/0/resources","value":{}}]`},
		},
		"a size is two fields": {
			patch: plan.JobPatch{JobRef: plan.JobRef{Name: "job"}, ResourceVersion: "5", Size: &plan.Size{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4)}},
			want:  []string{`: [` + version + `,{"op":"add","path":"/spec/parallelism","value":4},{"op":"add","path":"/spec/completions","value":4}]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set)
			var got []string
			r.kube.PrependReactor("patch", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
				patch := action.(clientgotesting.PatchAction)
				if !json.Valid(patch.GetPatch()) || patch.GetPatchType() != types.JSONPatchType {
					t.Errorf("no JSON patch: %s %s", patch.GetPatchType(), patch.GetPatch())
				}
				got = append(got, action.GetSubresource()+": "+string(patch.GetPatch()))
				return true, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "6"}}, nil
			})
			if err := r.apply(t, set, plan.Plan{PatchJobs: []plan.JobPatch{tc.patch}}); err != nil {
				t.Fatal(err)
			}
			diff(t, "patches", tc.want, got)
		})
	}
}

func TestRefusedResourcesAreToldWithTheirCause(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "job", nil)
	resources := &plan.Directives{Resources: []plan.ContainerResources{{}}}
	for name, tc := range map[string]struct {
		directives *plan.Directives
		err        error
		want       []string
	}{
		"a refusal of resources": {resources, invalid, []string{`Warning FailedResourcePropagation Reconciling: job "job" does not get the resources ` +
			`of its template; the cluster needs the feature MutablePodResourcesForSuspendedJobs: patching job ns/job: Job.batch "job" is invalid`}},
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

func TestNotesFitIntoEvents(t *testing.T) {
	r := newRig(t, newSet())
	r.report(newSet(), plan.Event{Type: "Normal", Reason: "Long", Note: strings.Repeat("x", children.MaxNote+1)})
	diff(t, "events", []string{"Normal Long Reconciling: " + strings.Repeat("x", children.MaxNote-3) + "..."}, r.events.all())
}
