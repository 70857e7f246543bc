// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// refuse makes the API refuse a request about a resource until the returned value is set.
func (r *rig) refuse(verb, resource string) (allowed *atomic.Bool) {
	allowed = &atomic.Bool{}
	r.kube.PrependReactor(verb, resource, func(action clientgotesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch a := action.(type) {
		case clientgotesting.PatchAction:
			name = a.GetName()
		case clientgotesting.GetAction:
			name = a.GetName()
		}
		return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New("denied by a policy"))
	})
	return allowed
}

// ready returns the condition Ready of the PodReadinessGroup.
func (r *rig) ready() metav1.Condition {
	r.Helper()
	g, err := r.groups.BatchV1alpha1().PodReadinessGroups("ns").Get(r.Context(), "g", metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	c := meta.FindStatusCondition(g.Status.Conditions, batchv1alpha1.ConditionReady)
	if c == nil {
		r.Fatal("no condition Ready")
	}
	return *c
}

const refusedLabel = `label batch.jobset-apiserver.io/pod-group-ready cannot be set on pod a and others: pods "a" is forbidden: denied by a policy`

// TestRefusedLabelIsReported has pods that the controller may not patch.
func TestRefusedLabelIsReported(t *testing.T) {
	for name, group := range map[string]*batchv1alpha1.PodReadinessGroup{"about the group": newGroup(2), "about a pod": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, group)
				allowed := r.refuse("patch", "pods")
				r.create(newPod("a", inGroup(0)))
				r.create(newPod("b", inGroup(0)))
				r.pass(time.Minute)
				var got []string
				for event := r.event(); event != ""; event = r.event() {
					if !strings.Contains(event, "GroupReady") {
						got = append(got, event)
					}
				}
				diff(t, "events", []string{"Warning PodGroupLabelFailed The " + refusedLabel}, got)
				if group != nil {
					diff(t, "message", "2 of 2 pods run; the "+refusedLabel, r.ready().Message)
				}
				allowed.Store(true)
				r.pass(3 * time.Minute)
				diff(t, "pods with the label", []string{"a", "b"}, r.labeled(0))
				if group != nil {
					diff(t, "message once it is allowed", "2 of 2 pods run", r.ready().Message)
				}
			})
		})
	}
}

// TestRefusedOwnerIsReported has a Job that the controller may not read, and no PodReadinessGroup whose status would say so.
func TestRefusedOwnerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.refuse("get", "jobs")
		r.create(newPod("a", inGroup(0), ofJob))
		r.pass(time.Minute)
		diff(t, "event", `Warning PodGroupSizeUnknown The size of the group cannot be read: reading Job ns/job: jobs "job" is forbidden: denied by a policy`, r.event())
		diff(t, "further events", 0, len(r.events.Events))
	})
}

// TestAnswersThatDifferAreTriedSlowly has an API that names each request which it refuses, and a PodReadinessGroup whose status says why.
func TestAnswersThatDifferAreTriedSlowly(t *testing.T) {
	for verb, resource := range map[string]string{"patch": "pods", "get": "jobs"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := newGroup(1)
				group.Spec.MinMember = nil
				r := newRig(t, group, newJob(1))
				var n atomic.Int64
				r.kube.PrependReactor(verb, resource, func(clientgotesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "a", fmt.Errorf("denied, request %d", n.Add(1)))
				})
				r.create(newPod("a", inGroup(0), ofJob))
				r.pass(5 * time.Minute)
				before, writes := n.Load(), count(r.groups.Actions(), "update", "podreadinessgroups")
				r.pass(20 * time.Minute)
				if tries := n.Load() - before; tries == 0 || tries > 40 {
					t.Errorf("%d requests in 20 minutes, want 2 a minute at most", tries)
				}
				diff(t, "writes of the status", 0, count(r.groups.Actions(), "update", "podreadinessgroups")-writes)
			})
		})
	}
}

// TestRefusedLabelsAreTriedSlowly has a large group whose pods the controller may not patch, and one of which only
// every second pod is refused.
func TestRefusedLabelsAreTriedSlowly(t *testing.T) {
	const n = 100
	for name, tc := range map[string]struct {
		refused            func(i int) bool
		labeled, perMinute int
	}{
		"all pods":         {func(int) bool { return true }, 0, 2},
		"every second pod": {func(i int) bool { return i%2 == 0 }, n / 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				refused := map[string]bool{}
				for i := range n {
					refused[fmt.Sprint("p", i)] = tc.refused(i)
				}
				r.kube.PrependReactor("patch", "pods", func(action clientgotesting.Action) (bool, runtime.Object, error) {
					name := action.(clientgotesting.PatchAction).GetName()
					return refused[name], nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("denied by a policy"))
				})
				for i := range n {
					r.create(newPod(fmt.Sprint("p", i), inGroup(0)))
				}
				r.pass(5 * time.Minute)
				diff(t, "pods with the label", tc.labeled, len(r.labeled(0)))
				before := count(r.kube.Actions(), "patch", "pods")
				r.pass(20 * time.Minute)
				if tries := count(r.kube.Actions(), "patch", "pods") - before; tries == 0 || tries > 20*tc.perMinute {
					t.Errorf("%d patches in 20 minutes, want %d a minute at most", tries, tc.perMinute)
				}
			})
		})
	}
}

// TestRefusedPatchesEndThePass has a group of many pods of which none may be patched, and an API that is asked about
// each of them, or about one only.
func TestRefusedPatchesEndThePass(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		most int64
	}{
		"a missing permission": {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(`User "c" cannot patch resource "pods" in API group "" in the namespace "ns"`)), 1},
		"no answer":            {errors.New("connection refused"), 1},
		"a webhook":            {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(`admission webhook "w" denied the request: no`)), maxRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pods = 40
				r := newRig(t, newGroup(pods))
				var asked atomic.Int64
				r.kube.PrependReactor("patch", "pods", func(clientgotesting.Action) (bool, runtime.Object, error) {
					asked.Add(1)
					return true, nil, tc.err
				})
				for i := range pods {
					r.create(newPod(fmt.Sprint("p", i), inGroup(0)))
				}
				r.pass(5 * time.Minute)
				before := asked.Load()
				r.pass(10 * time.Minute) // five passes at most, once backed off
				if n := asked.Load() - before; n < 1 || n > 6*tc.most {
					t.Errorf("%d requests in ten minutes, want 1 to %d", n, 6*tc.most)
				}
			})
		})
	}
}
