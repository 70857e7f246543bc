// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	versionedfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// controllerOfSet returns a controller that knows a set "s" of three groups.
func controllerOfSet(t *testing.T) *Controller {
	t.Helper()
	kube := fake.NewClientset()
	factory := informers.NewFactory(kube)
	kind := factory.For(Name)
	c, err := New(Config{
		Sets: versionedfake.NewClientset(), Kube: kube, Informers: kind, Recorder: events.NewFakeRecorder(10), Clock: clock.RealClock{}, Workers: 1,
	})
	if err == nil {
		_, err = factory.Build(kind)
	}
	if err == nil {
		set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "set"}}
		set.Spec.Replicas = ptr.To[int32](3)
		err = c.caches.sets.GetIndexer().Add(set)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// childMeta is the metadata of a child of the set, with a controller of the kind Pod.
func childMeta(name, index string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: "child",
		Labels:          map[string]string{leaderworkersetv1.SetNameLabelKey: "s", leaderworkersetv1.WorkerIndexLabelKey: index},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "s-1", UID: "leader", Controller: ptr.To(true)}},
	}
}

// workerGoes has a worker be deleted whose StatefulSet is not shown yet, as that of a leader which is shown.
func workerGoes(t *testing.T, c *Controller, leader *watchedPod) {
	t.Helper()
	if err := c.caches.pods.GetIndexer().Add(leader); err != nil {
		t.Error(err)
	}
	was := newWatchedPod(&corev1.Pod{ObjectMeta: childMeta("s-1-1", "1")})
	was.leader = handleOf("s-1")
	is := *was
	is.deleting = true
	c.onPods().OnUpdate(was, &is)
}

// TestNextStepOfGroupWaitsLess has children change right after a sync. The next one follows within 200 µs for each
// group if a group waits for the change, and gathers other changes for 100 ms.
func TestNextStepOfGroupWaitsLess(t *testing.T) {
	const sooner, soon = 3 * soonPerGroup, 100 * time.Millisecond
	pod := func(name, index string) *watchedPod {
		return newWatchedPod(&corev1.Pod{ObjectMeta: childMeta(name, index)})
	}
	leader := func() *watchedPod {
		p := pod("s-1", "0")
		p.uid = "leader"
		return p
	}
	for name, c := range map[string]struct {
		change func(c *Controller)
		want   time.Duration
	}{
		"a leader appears": {func(c *Controller) { c.onPods().OnAdd(pod("s-1", "0"), false) }, sooner},
		"a worker appears": {func(c *Controller) { c.onPods().OnAdd(pod("s-1-1", "1"), false) }, soon},
		"a leader is gone": {func(c *Controller) { c.onPods().OnDelete(pod("s-1", "0")) }, soon},
		"a container fails": {func(c *Controller) {
			failed := pod("s-1-1", "1")
			failed.restarted = true
			c.onPods().OnUpdate(pod("s-1-1", "1"), failed)
		}, sooner},
		"a worker goes": {func(c *Controller) { workerGoes(t, c, leader()) }, sooner},
		"a worker goes with its leader": {func(c *Controller) {
			going := leader()
			going.deleting = true
			workerGoes(t, c, going)
		}, soon},
		"a worker is ready": {func(c *Controller) {
			ready := pod("s-1-1", "1")
			ready.ready = true
			c.onPods().OnUpdate(pod("s-1-1", "1"), ready)
		}, soon},
		"the workers of a leader that is shown are gone": {func(c *Controller) {
			if err := c.caches.pods.GetIndexer().Add(leader()); err != nil {
				t.Error(err)
			}
			c.onChildren(c.statefulSets.NameFreed, c.forgetStatefulSet).OnDelete(newWatchedWorkers(&appsv1.StatefulSet{ObjectMeta: childMeta("s-1", "")}))
		}, soon},
		"the workers of a leader that is gone are gone": {func(c *Controller) {
			c.onChildren(c.statefulSets.NameFreed, c.forgetStatefulSet).OnDelete(newWatchedWorkers(&appsv1.StatefulSet{ObjectMeta: childMeta("s-1", "")}))
		}, sooner},
		"the workers of an update are ready": {func(c *Controller) {
			set := updatedSet()
			set.Namespace, set.Name, set.Spec.Replicas = "ns", "s", ptr.To[int32](3)
			if err := c.caches.sets.GetIndexer().Update(set); err != nil {
				t.Error(err)
			}
			was := newWatchedWorkers(&appsv1.StatefulSet{ObjectMeta: childMeta("s-1", "")})
			is := *was
			was.workers.Ready, is.workers.Ready = false, true
			c.onChildren(c.statefulSets.NameFreed, c.forgetStatefulSet).OnUpdate(was, &is)
		}, sooner},
		"a StatefulSet that no pod controls is gone": {func(c *Controller) {
			sts := &appsv1.StatefulSet{ObjectMeta: childMeta("s-1", "")}
			sts.OwnerReferences = nil
			c.onChildren(c.statefulSets.NameFreed, c.forgetStatefulSet).OnDelete(newWatchedWorkers(sts))
		}, soon},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				controller, begin := controllerOfSet(t), time.Now()
				var got []time.Duration
				var running sync.WaitGroup
				running.Go(func() {
					controller.queue.Run(ctx, 1, func(context.Context, cache.ObjectName) (queue.Due, error) {
						got = append(got, time.Since(begin))
						return queue.Due{}, nil
					})
				})
				controller.queue.Add(cache.NewObjectName("ns", "s"))
				synctest.Wait()
				c.change(controller)
				time.Sleep(time.Second)
				cancel()
				running.Wait()
				if diff := cmp.Diff([]time.Duration{0, c.want}, got); diff != "" {
					t.Errorf("times of syncs (-want +got):\n%s", diff)
				}
			})
		})
	}
}
