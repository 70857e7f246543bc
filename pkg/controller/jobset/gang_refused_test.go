// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// TestGroupsCannotBeCreated shows the message of each failure.
func TestGroupsCannotBeCreated(t *testing.T) {
	const prefix = " could not be created: "
	group, workload := "the PodGroup js"+groupsHash, "the Workload js"+groupsHash
	invalid := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
		Message: "PodGroup is invalid: spec.disruptionMode: Forbidden: may not be set without WorkloadAwarePreemption"}}
	foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": podGroups.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": "js" + groupsHash, "namespace": "ns", "uid": "other"}}}
	for name, tc := range map[string]struct {
		served   jobsetgang.API
		resource string
		err      error
		objects  []runtime.Object
		want     string
	}{
		"no API": {served: "v1", want: "NotSupported: the groups of the pods" + prefix + "the cluster serves no Workloads and PodGroups of scheduling.k8s.io"},
		"no permission": {
			served: jobsetgang.V1alpha2, resource: "workloads",
			err:  apierrors.NewForbidden(workloads.GroupResource(), "", errors.New(`User "c" cannot create resource "workloads" in API group "scheduling.k8s.io"`)),
			want: "Forbidden: " + workload + prefix + `workloads.scheduling.k8s.io is forbidden: User "c" cannot create resource`,
		},
		"invalid":       {served: jobsetgang.V1alpha2, resource: "podgroups", err: invalid, want: "Invalid: " + group + prefix + "PodGroup is invalid: spec.disruptionMode"},
		"a webhook":     {served: jobsetgang.V1alpha2, resource: "podgroups", err: apierrors.NewForbidden(podGroups.GroupResource(), "x", errors.New(`admission webhook "w" denied the request: no`)), want: "AdmissionDenied: " + group + prefix},
		"name is taken": {served: jobsetgang.V1alpha2, objects: []runtime.Object{foreign}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newGroupRig(t, withGroups, tc.served, tc.objects...)
				if tc.err != nil {
					r.dynamic.PrependReactor("create", tc.resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
				}
				r.run(t)
				if tc.want != "" {
					eventually(t, "the condition is True", func() bool { return r.creationFailure(t) != "" })
					if got := r.creationFailure(t); !strings.HasPrefix(got, tc.want) {
						t.Errorf("condition %q, want %q", got, tc.want)
					}
				} else { // a failure that may pass is reported later
					eventually(t, "a creation was tried", func() bool { return len(r.groupWrites()) > 1 })
				}
				if r.jobExists(t, "js-w-0") || r.jobExists(t, "js-w-1") {
					t.Error("a Job starts without its group")
				}
			})
		})
	}
}

// TestRefusedGroupDelaysNoOther refuses the PodGroup of one Job: the other Job does not wait for it.
func TestRefusedGroupDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
		js := r.set(t)
		js.Spec.Scheduling.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{{TargetReplicatedJobs: []string{"w"}, Job: &jobsetv1alpha2.JobScheduling{}}}
		if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var allowed atomic.Bool
		r.dynamic.PrependReactor("create", "podgroups", func(action clientgotesting.Action) (bool, runtime.Object, error) {
			name := action.(clientgotesting.CreateAction).GetObject().(metav1.Object).GetName()
			refused := name == "js-w-0"+groupsHash && !allowed.Load()
			return refused, nil, apierrors.NewForbidden(podGroups.GroupResource(), name, errors.New(`admission webhook "w" denied the request: no`))
		})
		r.run(t)
		eventually(t, "the Job of the other group exists", func() bool { return r.jobExists(t, "js-w-1") })
		eventually(t, "the condition is True", func() bool { return r.creationFailure(t) != "" })
		if got, want := r.creationFailure(t), "AdmissionDenied: the PodGroup js-w-0"+groupsHash+" could not be created: "; !strings.HasPrefix(got, want) {
			t.Errorf("condition %q, want %q", got, want)
		}
		if r.jobExists(t, "js-w-0") {
			t.Error("a Job starts without its group")
		}
		allowed.Store(true)
		eventually(t, "all Jobs exist, and the condition is False", func() bool { return r.jobExists(t, "js-w-0") && r.creationFailure(t) == "" })
	})
}

// TestRefusedGroupHidesNoRefusedJob refuses a group and a Job of another one: the condition has the words of the one that it names.
func TestRefusedGroupHidesNoRefusedJob(t *testing.T) {
	r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
	r.dynamic.PrependReactor("create", "podgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no groups")
	})
	r.kube.PrependReactor("create", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(podGroups.GroupResource(), "js-w-0", errors.New("exceeded quota: jobs"))
	})
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": podGroups.GroupVersion().String(), "kind": "PodGroup", "metadata": map[string]any{"name": "g", "namespace": "ns"}}}
	other := group.DeepCopy()
	other.SetName("h")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "js-w-0", Namespace: "ns"}}
	results, err := r.Apply(t.Context(), &plan.Observed{JobSet: r.set(t), Grouped: &jobsetgang.Observed{}}, plan.Plan{
		CreateJobs: []*batchv1.Job{job}, Groups: jobsetgang.Changes{Create: []*unstructured.Unstructured{group, other}},
	})
	if err == nil || !strings.Contains(err.Error(), "creating PodGroup ns/g: no groups") || !strings.Contains(err.Error(), "exceeded quota: jobs") {
		t.Errorf("error %v, want those of the group and of the Job", err)
	}
	diff(t, "what is refused", "the PodGroup g", results.Refused)
	diff(t, "refusals", []plan.Refusal{{Reason: "FailedCreate", Message: "no groups", MayPass: true}}, results.Refusals)
	diff(t, "creations", []plan.Creation{plan.Refused}, results.Creations)
	diff(t, "requests", []string{"create podgroups g", "create podgroups h"}, r.groupWrites())
}

// TestGroupNameIsTaken names the object that is in the way.
func TestGroupNameIsTaken(t *testing.T) {
	for name, tc := range map[string]struct{ owner, want string }{
		"by nobody":            {"", `creating PodGroup ns/g: podgroups.scheduling.k8s.io "g" already exists, and the JobSet does not control it`},
		"by another JobSet":    {"uid-other", `creating PodGroup ns/g: podgroups.scheduling.k8s.io "g" already exists, and the JobSet does not control it`},
		"by the JobSet itself": {"uid-js", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": podGroups.GroupVersion().String(), "kind": "PodGroup",
				"metadata": map[string]any{"name": "g", "namespace": "ns"}}}
			existing := object.DeepCopy()
			if tc.owner != "" {
				existing.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "JobSet", Name: "js", UID: types.UID(tc.owner), Controller: ptr.To(true)}})
			}
			r := newGroupRig(t, withGroups, jobsetgang.V1alpha2, existing)
			js := r.set(t)
			results, err := r.Apply(t.Context(), &plan.Observed{JobSet: js, Grouped: &jobsetgang.Observed{}}, plan.Plan{Groups: jobsetgang.Changes{Create: []*unstructured.Unstructured{object}}})
			diff(t, "error", tc.want, errorText(err))
			if tc.want != "" {
				diff(t, "refused", "the PodGroup g", results.Refused)
			}
		})
	}
}

// TestGroupsCannotBeDeleted shows the error, and goes on with the others.
func TestGroupsCannotBeDeleted(t *testing.T) {
	r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
	r.dynamic.PrependReactor("delete", "podgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("away")
	})
	grouped := &jobsetgang.Observed{API: jobsetgang.V1alpha2}
	refs := []jobsetgang.Ref{{Kind: "PodGroup", Name: "g", UID: "u1"}, {Kind: "Workload", Name: "w", UID: "u2"}}
	_, err := r.Apply(t.Context(), &plan.Observed{JobSet: r.set(t), Grouped: grouped}, plan.Plan{Groups: jobsetgang.Changes{Delete: refs}})
	diff(t, "error", "deleting PodGroup ns/g: away", errorText(err))
	diff(t, "requests", []string{"delete podgroups g u1", "delete workloads w u2"}, r.groupWrites())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Apply(ctx, &plan.Observed{JobSet: r.set(t), Grouped: grouped}, plan.Plan{Groups: jobsetgang.Changes{Delete: refs}})
	diff(t, "requests when the time is over", "2 <nil>", fmt.Sprint(len(r.groupWrites()), err))
}

// TestGroupsCreatedByOthers creates a group again whenever it was deleted.
func TestGroupsCreatedByOthers(t *testing.T) {
	r, now := newGroupRig(t, withGroups, jobsetgang.V1alpha2), clocktesting.NewFakePassiveClock(time.Now())
	r.clock = now
	r.build(t, withGroups)
	ref, deleted, last := jobsetgang.Ref{Kind: "PodGroup", Name: "g", UID: "u"}, 0, error(nil)
	r.dynamic.PrependReactor("delete", "podgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
		deleted++
		ref.UID += "x"
		return true, nil, nil
	})
	for range 300 {
		now.SetTime(now.Now().Add(time.Second))
		p := plan.Plan{Groups: jobsetgang.Changes{Delete: []jobsetgang.Ref{ref}}}
		_, last = r.Apply(t.Context(), &plan.Observed{JobSet: r.set(t), Grouped: &jobsetgang.Observed{}}, p)
	}
	diff(t, "how often the group is deleted in five minutes", 6, deleted)
	const want = "deleting PodGroup ns/g: podgroup g was created again 3 times within a minute, each time after the controller had deleted it; "
	if !strings.HasPrefix(errorText(last), want) {
		t.Errorf("got %v", last)
	}
}

// TestRefusedDeletionsOfGroupsEndThePass has many groups of which none may be deleted.
func TestRefusedDeletionsOfGroupsEndThePass(t *testing.T) {
	for name, tc := range map[string]struct {
		why  string
		want int
	}{
		"a missing permission": {`User "c" cannot delete resource "podgroups" in API group "scheduling.k8s.io"`, 1},
		"a webhook":            {`admission webhook "w" denied the request: no`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := newGroupRig(t, withGroups, jobsetgang.V1alpha2)
			asked := 0
			r.dynamic.PrependReactor("delete", "podgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
				asked++
				return true, nil, apierrors.NewForbidden(podGroups.GroupResource(), "x", errors.New(tc.why))
			})
			var p plan.Plan
			for i := range 50 {
				p.Groups.Delete = append(p.Groups.Delete, jobsetgang.Ref{Kind: "PodGroup", Name: fmt.Sprint("g", i), UID: types.UID(fmt.Sprint(i))})
			}
			if _, err := r.Apply(t.Context(), &plan.Observed{JobSet: r.set(t), Grouped: &jobsetgang.Observed{}}, p); err == nil {
				t.Error("no error")
			}
			diff(t, "requests", tc.want, asked)
		})
	}
}

// TestRefusedPatchesOfJobsEndThePass has many Jobs of which none may be suspended or deleted.
func TestRefusedPatchesOfJobsEndThePass(t *testing.T) {
	js := newSet()
	r := newRig(t, js)
	asked := map[string]int{}
	for _, verb := range []string{"patch", "delete"} {
		r.kube.PrependReactor(verb, "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
			asked[verb]++
			return true, nil, apierrors.NewForbidden(batchv1.Resource("jobs"), "x", fmt.Errorf(`User "c" cannot %s resource "jobs" in API group "batch"`, verb))
		})
	}
	r.deps.Runner = children.NewSlowStart(1)
	var p plan.Plan
	for i := range 50 {
		ref := plan.JobRef{Name: fmt.Sprint("js-w-", i), UID: types.UID(fmt.Sprint(i))}
		p.DeleteJobs = append(p.DeleteJobs, ref)
		p.PatchJobs = append(p.PatchJobs, plan.JobPatch{JobRef: ref, ResourceVersion: "1", Suspend: ptr.To(true)})
	}
	if _, err := r.Apply(t.Context(), &plan.Observed{JobSet: js}, p); err == nil {
		t.Error("no error")
	}
	diff(t, "requests", map[string]int{"patch": 1, "delete": 1}, asked)
}

// TestPodGroupChangedWhenItIsCreated has a webhook that changes each PodGroup when it is created. The controller replaces it, and stops that.
func TestPodGroupChangedWhenItIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, created := newGroupRig(t, withGroups, jobsetgang.V1alpha2), 0
		r.dynamic.PrependReactor("create", "podgroups", func(action clientgotesting.Action) (bool, runtime.Object, error) {
			created++
			object := action.(clientgotesting.CreateAction).GetObject().(*unstructured.Unstructured)
			object.SetUID(types.UID(fmt.Sprint("group-", created)))
			return false, nil, unstructured.SetNestedField(object.Object, int64(99), "spec", "schedulingPolicy", "gang", "minCount")
		})
		r.run(t)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		deleted := 0
		for _, action := range r.dynamic.Actions() {
			if action.Matches("delete", "podgroups") {
				deleted++
			}
		}
		if deleted != 5 { // after 1 and 3 minutes for the last times
			t.Errorf("the PodGroup is replaced %d times in five minutes, want 5", deleted)
		}
		want := "UndoneByOthers: the PodGroup js" + groupsHash + " could not be created: another party removed or changed the spec of podgroup js" + groupsHash +
			" 3 times within a minute, each time after the controller had created it; the API does not say who does, the audit log does; the controller replaces it at "
		if got := r.creationFailure(t); !strings.HasPrefix(got, want) {
			t.Errorf("condition %q, want %q", got, want)
		}
	})
}
