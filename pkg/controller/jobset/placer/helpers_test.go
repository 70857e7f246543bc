// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

const rack = "example.com/rack"

// env is a placer, the cluster that it watches, and the sets as a cache has them.
type env struct {
	*testing.T
	*Placer
	kube  *fake.Clientset
	clock bubbleClock

	mu    sync.Mutex
	sets  map[string]*jobsetv1alpha2.JobSet
	woken map[string]bool
	// versions is the last resource version.
	versions int
}

// bubbleClock is the clock of a bubble.
type bubbleClock struct{ clock.RealClock }

// Step lets time pass until all that follows from it is done.
func (bubbleClock) Step(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newEnv starts a placer in the bubble of the test.
func newEnv(t *testing.T, full placement.WhenFull, objects ...runtime.Object) *env {
	e := &env{
		T: t, kube: fake.NewClientset(objects...),
		sets: map[string]*jobsetv1alpha2.JobSet{}, woken: map[string]bool{},
	}
	e.Placer = New(Config{
		Kube: e.kube, Clock: e.clock, WhenFull: full,
		Placed: func() (out []*jobsetv1alpha2.JobSet, err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, js := range e.sets {
				if js.Status.Placement != nil {
					out = append(out, js)
				}
			}
			return out, nil
		},
		Wake: func(key cache.ObjectName) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.woken[key.Name] = true
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.Placer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

// node returns one of a rack, with room for two pods of a set.
func node(rackName string, n int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", rackName, n), Labels: map[string]string{rack: rackName}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10"),
		}},
	}
}

// set adds a set of exclusive Jobs with two pods each, the sooner the smaller its age.
func (e *env) set(name string, jobs int32, age int) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{jobsetv1alpha2.ExclusiveKey: rack},
		CreationTimestamp: metav1.NewTime(e.clock.Now().Add(time.Duration(age) * time.Second)),
	}}
	rj := jobsetv1alpha2.ReplicatedJob{Name: "w", Replicas: ptr.To(jobs)}
	rj.Template.Spec.Parallelism = ptr.To[int32](2)
	rj.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}}
	js.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{rj}
	e.store(js)
	return js
}

func (e *env) store(js *jobsetv1alpha2.JobSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.versions++
	js.ResourceVersion = strconv.Itoa(e.versions)
	e.sets[js.Name] = js
}

// ask asks for the domains of all Jobs of a set, and returns them, or why there are none.
func (e *env) ask(js *jobsetv1alpha2.JobSet) (*domains.Placed, string) {
	e.Helper()
	u := domains.Unplaced{Topology: rack}
	for index := range helper.Replicas(&js.Spec.ReplicatedJobs[0]) {
		u.Indexes, u.Restarts = append(u.Indexes, index), append(u.Restarts, 0)
	}
	placed, err := e.Place(e.Context(), js, []domains.Unplaced{u})
	switch {
	case err != nil:
		e.Fatal(err)
	case placed == nil:
		return nil, "unknown"
	case placed.Placement == nil:
		return placed, placed.Reason
	}
	var out []string
	for _, job := range placed.Placement.ReplicatedJobs[0].Jobs {
		out = append(out, job.Domain)
	}
	return placed, strings.Join(out, " ")
}

// await asks until the watches are filled.
func (e *env) await(js *jobsetv1alpha2.JobSet, want string) *domains.Placed {
	e.Helper()
	placed, got := e.ask(js)
	for range 60 {
		if got == want {
			return placed
		}
		e.clock.Step(gather)
		placed, got = e.ask(js)
	}
	e.Fatalf("the Jobs of %s are at %q, want %q", js.Name, got, want)
	return nil
}

// awaitWoken waits until a set is looked at again.
func (e *env) awaitWoken(name string) {
	e.Helper()
	synctest.Wait()
	for range 120 {
		e.mu.Lock()
		woken := e.woken[name]
		delete(e.woken, name)
		e.mu.Unlock()
		if woken {
			return
		}
		e.clock.Step(gather)
	}
	e.Fatalf("%s is not woken", name)
}

// written stores what a set was given, as its status would be.
func (e *env) written(js *jobsetv1alpha2.JobSet, placed *domains.Placed) *jobsetv1alpha2.JobSet {
	js = js.DeepCopy()
	js.Status.Placement = placed.Placement
	e.store(js)
	e.Withdraw(cache.MetaObjectToName(js))
	return js
}

func (e *env) key(js *jobsetv1alpha2.JobSet) cache.ObjectName { return cache.MetaObjectToName(js) }

// eventually lets time pass until a watch has shown something.
func (e *env) eventually(shown func() bool) {
	e.Helper()
	synctest.Wait()
	for begun := e.clock.Now(); !shown(); e.clock.Step(gather) {
		if e.clock.Since(begun) > 10*time.Minute {
			e.Fatal("it does not come to that")
		}
	}
}
