// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers/informerstest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	groupsfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/test/fakestore"
)

// rig is a controller that runs, with clients that store objects as an API server does.
type rig struct {
	*testing.T
	kube   *fake.Clientset
	groups *groupsfake.Clientset
	events *events.FakeRecorder
}

// newRig starts a controller in the bubble of the test. The objects are there before it starts.
func newRig(t *testing.T, group *batchv1alpha1.PodReadinessGroup, objects ...runtime.Object) *rig {
	t.Helper()
	groups := groupsfake.NewSimpleClientset()
	if group != nil {
		groups = groupsfake.NewSimpleClientset(group)
	}
	return newRigWith(t, groups, objects...)
}

// newRigWith starts a controller with that client of PodReadinessGroups.
func newRigWith(t *testing.T, groups *groupsfake.Clientset, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{T: t, kube: fake.NewClientset(objects...), groups: groups, events: events.NewFakeRecorder(100)}
	fakestore.Install(&r.kube.Fake, r.kube.Tracker())
	fakestore.Install(&r.groups.Fake, r.groups.Tracker())
	factory := informers.NewFactory(r.kube)
	kind := factory.For(Name)
	c, err := New(Config{
		Groups: r.groups, Kube: r.kube, Informers: kind, Recorder: r.events, Clock: clock.RealClock{}, Workers: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	informerstest.Run(t, factory, kind, c.Run)
	r.pass(100 * time.Millisecond)
	return r
}

// pass lets time pass until all that follows from it is done.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func newPod(name string, labels map[string]string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: labels},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func inGroup(prefix int) map[string]string {
	return map[string]string{plan.Prefixes[prefix].GroupKey: "g"}
}

func ofJob(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "uid-job", Controller: ptr.To(true)}}
}

func newJob(parallelism int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "uid-job"},
		Spec:       batchv1.JobSpec{Parallelism: &parallelism},
	}
}

func newGroup(minMember int32) *batchv1alpha1.PodReadinessGroup {
	return &batchv1alpha1.PodReadinessGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", Generation: 1}, Spec: batchv1alpha1.PodReadinessGroupSpec{MinMember: &minMember},
	}
}

// labeled returns the pods that carry the label of the prefix.
func (r *rig) labeled(prefix int) (names []string) {
	r.Helper()
	all, err := r.kube.CoreV1().Pods("ns").List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Labels[plan.Prefixes[prefix].ReadyKey] == "true" {
			names = append(names, all.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// count returns how many requests of a kind were sent.
func count(actions []clientgotesting.Action, verb, resource string) (n int) {
	for _, a := range actions {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

// event returns the next event.
func (r *rig) event() string {
	select {
	case event := <-r.events.Events:
		return event
	default:
		return ""
	}
}

func (r *rig) create(pod *corev1.Pod) {
	r.Helper()
	if _, err := r.kube.CoreV1().Pods("ns").Create(r.Context(), pod, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// change changes the status of a pod, or anything else.
func (r *rig) change(name string, change func(*corev1.Pod)) {
	r.Helper()
	pods := r.kube.CoreV1().Pods("ns")
	pod, err := pods.Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	was := pod.DeepCopy()
	change(pod)
	write := pods.Update
	if !equality.Semantic.DeepEqual(was.Status, pod.Status) {
		write = pods.UpdateStatus
	}
	if _, err := write(r.Context(), pod, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
