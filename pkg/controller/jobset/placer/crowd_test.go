// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// crowd is a number of sets that wait.
const crowd = 2000

// stepCrowd lets the clock go on, has those ask that are woken, and returns their number.
func (e *env) stepCrowd(sets map[string]*jobsetv1alpha2.JobSet) (woken int) {
	e.Helper()
	e.clock.Step(gather)
	for {
		e.mu.Lock()
		var next string
		for name := range e.woken {
			next = name
			break
		}
		delete(e.woken, next)
		e.mu.Unlock()
		if next == "" {
			return woken
		}
		woken++
		e.ask(sets[next])
	}
}

// TestFreedPodWakesTheFirstFew has pods go while very many sets wait: one of them finds out for all others that there
// is no room, or who gets it.
func TestFreedPodWakesTheFirstFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0))
		started := make(chan struct{})
		watch := e.watch.(*informers.OnDemand[view])
		declare := watch.Declare
		watch.Declare = func(kind *informers.Kind) *view {
			<-started
			return declare(kind)
		}
		sets := map[string]*jobsetv1alpha2.JobSet{}
		for i := range crowd {
			name := fmt.Sprintf("js-%04d", i)
			sets[name] = e.set(name, 2, i) // needs two racks
			e.ask(sets[name])
		}
		close(started)
		e.eventually(func() bool { return e.watch.Current() != nil })
		answered := func() (n int) {
			e.Placer.mu.Lock()
			defer e.Placer.mu.Unlock()
			for _, w := range e.waiting {
				if w.answer != nil && w.answer.Reason == reasonNoDomain {
					n++
				}
			}
			return n
		}
		woken := 0
		for deadline := time.Now().Add(time.Hour); answered() < crowd && time.Now().Before(deadline); {
			woken += e.stepCrowd(sets)
		}
		if n := answered(); n != crowd {
			t.Fatalf("%d of %d sets know why they wait", n, crowd)
		}
		for e.stepCrowd(sets) > 0 { // those who have news
		}
		t.Logf("%d were woken until all know why they wait", woken)

		const freed = 20
		woken = 0
		for range freed {
			e.Freed()
			woken += e.stepCrowd(sets)
		}
		for range 5 {
			woken += e.stepCrowd(sets)
		}
		t.Logf("%d freed pods woke %d of %d sets", freed, woken, crowd)
		if most := freed * (wakeFew + 1); woken > most {
			t.Errorf("%d freed pods wake %d sets, want at most %d", freed, woken, most)
		}
		if _, err := e.kube.CoreV1().Nodes().Create(t.Context(), node("b", 0), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		placed := func() bool {
			e.Placer.mu.Lock()
			defer e.Placer.mu.Unlock()
			return len(e.given) == 1
		}
		for deadline := time.Now().Add(time.Hour); !placed(); {
			if time.Now().After(deadline) {
				t.Fatal("nobody gets the free domains")
			}
			e.stepCrowd(sets)
		}
		if _, first := e.given[e.key(sets["js-0000"])]; !first {
			t.Errorf("placed: %v", e.given)
		}
	})
}

// TestFewThatDoNotAskKeepNobody wakes sets that do not ask any more, because they were suspended: others are woken in their place.
func TestFewThatDoNotAskKeepNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0))
		e.await(e.set("first", 2, 0), "NoDomain")
		for i := range 3 * wakeFew {
			e.ask(e.set(fmt.Sprint("silent-", i), 2, 1))
		}
		last := e.set("last", 2, 2)
		e.ask(last)
		e.mu.Lock()
		clear(e.woken)
		e.mu.Unlock()
		e.Freed()
		e.awaitWoken("last")
	})
}
