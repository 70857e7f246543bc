// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	groupsfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// TestBothPrefixes has a group of each prefix, under the same name.
func TestBothPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newGroup(1), newPod("a", inGroup(0)), newPod("b", inGroup(1)), newPod("c", nil))
		diff(t, "our pods", []string{"a"}, r.labeled(0))
		diff(t, "pods of the other", []string{"b"}, r.labeled(1))
		diff(t, "patches", 2, count(r.kube.Actions(), "patch", "pods"))
	})
}

// TestOwnersDecide has a Job whose second pod comes late, and is then changed.
func TestOwnersDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, newJob(2), newPod("a", inGroup(1), ofJob))
		diff(t, "pods with the label while one is missing", []string(nil), r.labeled(1))
		r.pass(5 * time.Second)
		diff(t, "reads of the Job", 1, count(r.kube.Actions(), "get", "jobs"))
		r.create(newPod("b", inGroup(1), ofJob))
		r.pass(200 * time.Millisecond)
		diff(t, "pods with the label", []string{"a", "b"}, r.labeled(1))
		diff(t, "patches", 2, count(r.kube.Actions(), "patch", "pods"))
		diff(t, "reads of the Job, once more before the label", 2, count(r.kube.Actions(), "get", "jobs"))
		r.pass(time.Minute)
		diff(t, "patches later", 2, count(r.kube.Actions(), "patch", "pods"))
		diff(t, "reads later", 2, count(r.kube.Actions(), "get", "jobs"))

		r.change("a", func(p *corev1.Pod) { delete(p.Labels, plan.Prefixes[1].ReadyKey) })
		r.pass(200 * time.Millisecond)
		diff(t, "a label that was removed from a ready group comes back", []string{"a", "b"}, r.labeled(1))
		r.change("b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		r.change("a", func(p *corev1.Pod) { delete(p.Labels, plan.Prefixes[1].ReadyKey) })
		r.pass(200 * time.Millisecond)
		diff(t, "and does not when the group is not ready", []string{"b"}, r.labeled(1))
	})
}

// TestGroupThatNoCacheShowsCounts has a group that was created just before its pods, which another API server serves:
// the watch of pods is ahead.
func TestGroupThatNoCacheShowsCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		group *batchv1alpha1.PodReadinessGroup
		get   error
		want  []string
	}{
		"more members than the Job has":   {group: newGroup(3)},
		"as many members as the Job has":  {group: newGroup(2), want: []string{"a", "b"}},
		"no group":                        {want: []string{"a", "b"}},
		"what serves groups does not run": {group: newGroup(3), get: apierrors.NewServiceUnavailable("away"), want: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := groupsfake.NewSimpleClientset()
				if tc.group != nil {
					groups = groupsfake.NewSimpleClientset(tc.group)
				}
				groups.PrependReactor("list", "podreadinessgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
					return true, &batchv1alpha1.PodReadinessGroupList{}, nil
				})
				groups.PrependWatchReactor("podreadinessgroups", func(clientgotesting.Action) (bool, watch.Interface, error) {
					return true, watch.NewFake(), nil
				})
				groups.PrependReactor("get", "podreadinessgroups", func(clientgotesting.Action) (bool, runtime.Object, error) {
					return tc.get != nil, nil, tc.get
				})
				r := newRigWith(t, groups, newJob(2), newPod("a", inGroup(1), ofJob), newPod("b", inGroup(1), ofJob))
				r.pass(time.Second)
				diff(t, "pods with the label", tc.want, r.labeled(1))
				diff(t, "reads of the group", 1, count(r.groups.Actions(), "get", "podreadinessgroups"))
			})
		})
	}
}

// TestSmallerJobIsNoticed has a Job that is made smaller after it was read: nothing is watched that would say so.
func TestSmallerJobIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, newJob(2), newPod("a", inGroup(0), ofJob))
		diff(t, "pods with the label", []string(nil), r.labeled(0))
		if _, err := r.kube.BatchV1().Jobs("ns").Update(t.Context(), newJob(1), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(13 * time.Second)
		diff(t, "pods with the label 13 s later", []string{"a"}, r.labeled(0))
	})
}

// TestOwnerWhosePodsHaveAllFailed has two Jobs in one group. The only pod of one has failed, and the other one runs as many as both want.
func TestOwnerWhosePodsHaveAllFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newJob(1)
		other.Name, other.UID = "other", "uid-other"
		ofOther := func(pod *corev1.Pod) {
			ofJob(pod)
			pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = other.Name, other.UID
		}
		failed := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
		r := newRig(t, nil, newJob(1), other, newPod("a", inGroup(0), ofJob), newPod("b", inGroup(0), ofJob), newPod("c", inGroup(0), ofOther, failed))
		r.pass(time.Second)
		diff(t, "pods with the label", []string{"a", "b"}, r.labeled(0))
	})
}

func TestUnknownSizeStabilizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, newPod("a", inGroup(1)))
		r.pass(1500 * time.Millisecond)
		r.create(newPod("b", inGroup(1)))
		r.pass(1500 * time.Millisecond)
		diff(t, "pods with the label before it is stable", []string(nil), r.labeled(1))
		r.pass(time.Second)
		diff(t, "pods with the label", []string{"a", "b"}, r.labeled(1))
	})
}

// TestStatusIsBatched lets the pods of a group start one by one, in three seconds.
func TestStatusIsBatched(t *testing.T) {
	const n = 100
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newGroup(n))
		for i := range n {
			r.create(newPod(fmt.Sprint("p", i), inGroup(0)))
			r.pass(30 * time.Millisecond)
		}
		r.pass(2 * time.Second)
		diff(t, "pods with the label", n, len(r.labeled(0)))
		diff(t, "patches of pods", n, count(r.kube.Actions(), "patch", "pods"))
		if writes := count(r.groups.Actions(), "update", "podreadinessgroups"); writes > 8 {
			t.Errorf("%d writes of the status", writes)
		}
		g, err := r.groups.BatchV1alpha1().PodReadinessGroups("ns").Get(t.Context(), "g", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "phase", batchv1alpha1.GroupReady, g.Status.Phase)
		diff(t, "counts", []int32{n, n, n}, []int32{g.Status.Pods, g.Status.Running, g.Status.Ready})
		diff(t, "event", "Normal GroupReady 100 of 100 pods run", r.event())
	})
}

// TestOnePodKeepsNoOtherFromItsLabel has a pod that is gone, one that was replaced, and one that cannot be patched.
func TestOnePodKeepsNoOtherFromItsLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := []runtime.Object{newPod("a", inGroup(0)), newPod("b", inGroup(0)), newPod("c", inGroup(0)), newPod("d", inGroup(0))}
		r := newRig(t, nil, pods...)
		resource := schema.GroupResource{Resource: "pods"}
		replacedPod := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "b", nil)
		replacedPod.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.uid"}}
		answers := map[string]error{
			"a": apierrors.NewNotFound(resource, "a"), "b": replacedPod, "c": apierrors.NewForbidden(resource, "c", nil),
		}
		tries := map[string]int{}
		var mu sync.Mutex
		r.kube.PrependReactor("patch", "pods", func(action clientgotesting.Action) (bool, runtime.Object, error) {
			name := action.(clientgotesting.PatchAction).GetName()
			mu.Lock()
			defer mu.Unlock()
			tries[name]++
			return answers[name] != nil && tries["c"] < 3, nil, answers[name]
		})
		r.pass(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		diff(t, "pods with the label", []string{"c", "d"}, slices.DeleteFunc(r.labeled(0), func(name string) bool { return name < "c" }))
		if tries["c"] != 3 || tries["d"] != 1 {
			t.Errorf("patches by pod: %v", tries)
		}
	})
}

// TestMalformedSizeIsReportedOnce has a pod that states a size which is no number.
func TestMalformedSizeIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := inGroup(0)
		labels[plan.Prefixes[0].SizeKey] = "many"
		r := newRig(t, nil, newPod("a", labels))
		r.create(newPod("b", inGroup(0)))
		r.pass(10 * time.Second)
		diff(t, "event", "Warning InvalidPodGroupSize batch.jobset-apiserver.io/pod-group-size must be a number from 1 to 100000 on all pods of the group", r.event())
		diff(t, "further events", 0, len(r.events.Events))
		diff(t, "pods with the label", []string{"a", "b"}, r.labeled(0))
	})
}

// TestUnreadableOwner has a Job that the controller may not read.
func TestUnreadableOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := newGroup(1)
		group.Spec.MinMember = nil
		r := newRig(t, group)
		r.kube.PrependReactor("get", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", nil)
		})
		r.create(newPod("a", inGroup(0), ofJob))
		r.pass(3 * time.Second)
		diff(t, "pods with the label", []string(nil), r.labeled(0))
		g, err := r.groups.BatchV1alpha1().PodReadinessGroups("ns").Get(t.Context(), "g", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "reason", plan.ReasonSizeUnknown, g.Status.Conditions[0].Reason)
	})
}

// TestAnswersAboutAnotherPod has the answers of an API server to a patch that names the UID of a pod which is gone.
func TestAnswersAboutAnotherPod(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := func(field string) error {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field}}
		return err
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"another pod of the name":    {invalid("metadata.uid"), true},
		"another field":              {invalid("metadata.labels"), false},
		"deleted during the request": {apierrors.NewConflict(pods, "a", errors.New("uid mismatch: the provided object specified uid 1, and no existing object was found")), true},
		"a precondition":             {apierrors.NewConflict(pods, "a", errors.New("Precondition failed: UID in precondition: 1, UID in object meta: 2")), true},
		"many writers":               {apierrors.NewConflict(pods, "a", errors.New("the object has been modified")), false},
		"not allowed":                {apierrors.NewForbidden(pods, "a", errors.New("no")), false},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "replaced", tc.want, replaced(tc.err)) })
	}
}

// TestUnreadableGroup: how many pods a group needs is unknown while its PodReadinessGroup cannot be read. No pod is labeled until it can.
func TestUnreadableGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sound := newGroup(2)
		bad := newGroup(2)
		bad.Spec, bad.Annotations = batchv1alpha1.PodReadinessGroupSpec{}, map[string]string{unreadable.Annotation: "its bytes are damaged"}
		r := newRig(t, bad, newPod("a", inGroup(0)), newPod("b", inGroup(0)))
		r.pass(time.Minute)
		if got := r.labeled(0); len(got) > 0 {
			t.Errorf("pods that are labeled while the group cannot be read: %q", got)
		}
		if _, err := r.groups.BatchV1alpha1().PodReadinessGroups("ns").Update(t.Context(), sound, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		if got := r.labeled(0); len(got) != 2 {
			t.Errorf("pods that are labeled when it can be read again: %q", got)
		}
	})
}
