// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestAwaitedChanges has changes of pods for which a set is looked at soon, and others that can wait.
func TestAwaitedChanges(t *testing.T) {
	pod := func(index int32, change func(f *podFacts)) *watchedPod {
		p := &watchedPod{podFacts: podFacts{index: index, node: handleOf("")}}
		change(&p.podFacts)
		return p
	}
	none := func(*podFacts) {}
	restarted := func(f *podFacts) { f.restarted = true }
	ready := func(f *podFacts) { f.ready = true }
	placed := func(f *podFacts) { f.node = handleOf("node-1") }
	deleting := func(f *podFacts) { f.deleting = true }
	plain, ordered, exclusive := &leaderworkersetv1.LeaderWorkerSet{}, &leaderworkersetv1.LeaderWorkerSet{}, &leaderworkersetv1.LeaderWorkerSet{}
	updated := updatedSet()
	ordered.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
	exclusive.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
	for name, c := range map[string]struct {
		set     *leaderworkersetv1.LeaderWorkerSet
		was, is *watchedPod
		want    bool
	}{
		"a leader appears":                       {plain, nil, pod(0, none), true},
		"a leader appears that goes":             {plain, nil, pod(0, deleting), false},
		"a worker appears":                       {plain, nil, pod(1, none), false},
		"a worker appears that has restarted":    {plain, nil, pod(1, restarted), true},
		"a pod without an index appears":         {plain, nil, pod(-1, none), false},
		"a container of a leader restarts":       {plain, pod(0, none), pod(0, restarted), true},
		"a container of a worker restarts":       {plain, pod(1, none), pod(1, restarted), true},
		"a container has restarted before":       {plain, pod(1, restarted), pod(1, func(f *podFacts) { restarted(f); ready(f) }), false},
		"a worker that has restarted goes":       {plain, pod(1, none), pod(1, func(f *podFacts) { restarted(f); deleting(f) }), false},
		"a leader becomes ready":                 {plain, pod(0, none), pod(0, ready), false},
		"a leader becomes ready, workers wait":   {ordered, pod(0, none), pod(0, ready), true},
		"a leader becomes ready in an update":    {updated, pod(0, none), pod(0, ready), true},
		"a worker becomes ready in an update":    {updated, pod(1, none), pod(1, ready), false},
		"a leader of an update gets a node":      {updated, pod(0, none), pod(0, placed), false},
		"a leader is not ready any longer":       {ordered, pod(0, ready), pod(0, none), false},
		"a worker becomes ready":                 {ordered, pod(1, none), pod(1, ready), false},
		"a leader gets a node":                   {plain, pod(0, none), pod(0, placed), false},
		"a leader gets a node, workers wait":     {exclusive, pod(0, none), pod(0, placed), true},
		"a worker gets a node":                   {exclusive, pod(1, none), pod(1, placed), false},
		"a leader with a node changes otherwise": {exclusive, pod(0, placed), pod(0, func(f *podFacts) { placed(f); ready(f) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := awaited(c.set, c.was, c.is); got != c.want {
				t.Errorf("awaited: %t", got)
			}
		})
	}
}

// updatedSet returns a set that says that it is being updated.
func updatedSet() *leaderworkersetv1.LeaderWorkerSet {
	set := &leaderworkersetv1.LeaderWorkerSet{}
	set.Status.Conditions = []metav1.Condition{{Type: leaderworkersetv1.ConditionUpdateInProgress, Status: metav1.ConditionTrue}}
	return set
}

// TestAwaitedChangesOfWorkers has changes of StatefulSets of workers.
func TestAwaitedChangesOfWorkers(t *testing.T) {
	workers := func(ready, deleting bool) *watchedWorkers {
		return &watchedWorkers{controlled: true, workers: plan.Workers{Ready: ready, Deleting: deleting}}
	}
	plain, updated := &leaderworkersetv1.LeaderWorkerSet{}, updatedSet()
	for name, c := range map[string]struct {
		set     *leaderworkersetv1.LeaderWorkerSet
		was, is *watchedWorkers
		want    bool
	}{
		"they become ready":                    {plain, workers(false, false), workers(true, false), false},
		"they become ready in an update":       {updated, workers(false, false), workers(true, false), true},
		"they are ready":                       {updated, workers(true, false), workers(true, false), false},
		"they are not ready any longer":        {updated, workers(true, false), workers(false, false), false},
		"those that go become ready":           {updated, workers(false, true), workers(true, true), false},
		"others of the name, which were ready": {updated, workers(true, false), &watchedWorkers{workers: plan.Workers{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := workersAwaited(c.set, c.was, c.is); got != c.want {
				t.Errorf("awaited: %t", got)
			}
		})
	}
}

// TestSoonAfter grows with the set, so that a burst of changes costs no more in a large one.
func TestSoonAfter(t *testing.T) {
	for groups, want := range map[int32]time.Duration{0: 0, 12: 2400 * time.Microsecond, 100: 20 * time.Millisecond, 1000: 200 * time.Millisecond} {
		set := &leaderworkersetv1.LeaderWorkerSet{}
		set.Spec.Replicas = ptr.To(groups)
		if got := soonAfter(set); got != want {
			t.Errorf("%d groups: after %v, want %v", groups, got, want)
		}
	}
}
