// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// waitingCrowd returns an env in which very many sets know that there are too few domains for them.
func waitingCrowd(t *testing.T) (*env, map[string]*jobsetv1alpha2.JobSet) {
	t.Helper()
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", Generation: 1}}
	e, sets := newEnv(t, placement.WhenFullWait, node("a", 0), daemon), map[string]*jobsetv1alpha2.JobSet{}
	watch, started := e.watch.(*informers.OnDemand[view]), make(chan struct{})
	declare := watch.Declare
	watch.Declare = func(kind *informers.Kind) *view {
		<-started
		return declare(kind)
	}
	for i := range crowd {
		name := fmt.Sprintf("js-%04d", i)
		sets[name] = e.set(name, 2, i) // needs two racks
		e.ask(sets[name])
	}
	close(started) // one decision is about all of them
	e.eventually(func() bool { return e.watch.Current() != nil })
	for quiet := 0; quiet < 3; quiet++ {
		if e.stepCrowd(sets) > 0 {
			quiet = 0
		}
	}
	return e, sets
}

// TestCrowdCostsNothingAtRest has very many sets wait for an hour in which nothing becomes free, although the cluster lives: kubelets write
// their nodes, a DaemonSet counts its pods, and pods that take no room come and go.
func TestCrowdCostsNothingAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, sets := waitingCrowd(t)
		woken, decisions, placed := 0, 0, e.Placed
		e.Placer.mu.Lock()
		e.Placed = func() ([]*jobsetv1alpha2.JobSet, error) {
			decisions++
			return placed()
		}
		e.Placer.mu.Unlock()
		for minute := range 60 {
			live(e, minute)
			for range 60 {
				woken += e.stepCrowd(sets)
			}
		}
		if woken > 0 || decisions > 0 {
			t.Errorf("%d sets are woken, and there are %d decisions in an hour", woken, decisions)
		}
		if err := e.kube.AppsV1().DaemonSets("kube-system").Delete(t.Context(), "agent", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return e.stepCrowd(sets) > 0 })
	})
}

// live changes objects of the cluster, none of which makes room.
func live(e *env, minute int) {
	e.Helper()
	ctx, beats := e.Context(), metav1.NewTime(e.clock.Now())
	kubelet := node("a", 0)
	kubelet.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: beats}}
	_, err := e.kube.CoreV1().Nodes().Update(ctx, kubelet, metav1.UpdateOptions{})
	must(e, err)
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", Generation: 1}}
	daemon.Status.NumberReady = int32(minute % 2) //nolint:gosec // a small number
	_, err = e.kube.AppsV1().DaemonSets("kube-system").Update(ctx, daemon, metav1.UpdateOptions{})
	must(e, err)
	for name, pod := range map[string]corev1.Pod{
		"pending": {Status: corev1.PodStatus{Phase: corev1.PodPending}},
		"ended":   {Spec: corev1.PodSpec{NodeName: "a-0"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
	} {
		pods := e.kube.CoreV1().Pods("ns")
		pod.Namespace, pod.Name = "ns", name
		_, err := pods.Create(ctx, &pod, metav1.CreateOptions{})
		must(e, err)
		e.clock.Step(time.Second)
		must(e, pods.Delete(ctx, name, metav1.DeleteOptions{}))
	}
}

func must(e *env, err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// TestNewSetIsDecidedAlone has a set ask for domains while others wait for which nothing has become free: they are not looked at again.
func TestNewSetIsDecidedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *env, js *jobsetv1alpha2.JobSet)
		alone  bool
	}{
		"nothing has happened":            {func(*env, *jobsetv1alpha2.JobSet) {}, true},
		"something may have become free":  {func(e *env, _ *jobsetv1alpha2.JobSet) { e.Freed() }, false},
		"it has domains of its own":       {func(_ *env, js *jobsetv1alpha2.JobSet) { js.Status.Placement = &jobsetv1alpha2.Placement{} }, false},
		"it was given what it needs less": {func(e *env, js *jobsetv1alpha2.JobSet) { e.Placer.given[e.key(js)] = given{uid: "before"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, placement.WhenFullWait, node("a", 0))
				waits := e.set("waits", 2, 0)
				e.await(waits, reasonNoDomain)
				e.Placer.waiting[e.key(waits)].request = placement.Request{}
				js := e.set("js", 1, 1)
				c.change(e, js)
				if _, got := e.ask(js); got != "a" {
					t.Errorf("the Job is at %q", got)
				}
				if alone := e.Placer.waiting[e.key(waits)].request.Groups == nil; alone != c.alone {
					t.Errorf("the set is decided alone: %t", alone)
				}
			})
		})
	}
}

// TestChangesOfDaemonSets has a DaemonSet count its pods, which makes no room, and change its template, which may.
func TestChangesOfDaemonSets(t *testing.T) {
	was := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	counted, changed := was.DeepCopy(), was.DeepCopy()
	counted.Status.NumberReady, changed.Generation = 1, 2
	another := counted.DeepCopy()
	another.UID = "another"
	for name, c := range map[string]struct {
		is   *appsv1.DaemonSet
		want bool
	}{"it counts its pods": {counted, false}, "its template changes": {changed, true}, "another has its name": {another, true}} {
		if got := makesRoom(was, c.is); got != c.want {
			t.Errorf("%s: may make room: %t", name, got)
		}
	}
}
