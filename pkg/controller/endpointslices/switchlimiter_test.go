// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestSwitchLimiter gives turns to thousands of Services.
func TestSwitchLimiter(t *testing.T) {
	const services = 5000
	now, l := time.Unix(1000000, 0), newSwitchLimiter()
	last := time.Duration(0)
	for n := range services {
		key := cache.NewObjectName("ns", fmt.Sprint(n))
		wait := l.wait(key, 4, now)
		if want := max(0, time.Duration(n-switchBurst)*switchEvery); wait != want {
			t.Fatalf("Service %d waits %s, want %s", n, wait, want)
		}
		if again := l.wait(key, 4, now.Add(time.Second)); again != max(0, wait-time.Second) {
			t.Fatalf("Service %d waits %s one second after it was to wait %s", n, again, wait)
		}
		last = wait
	}
	for n := range services {
		l.forget(cache.NewObjectName("ns", fmt.Sprint(n)))
	}
	if len(l.turns) != 0 {
		t.Errorf("%d turns are kept", len(l.turns))
	}
	large, after := cache.NewObjectName("ns", "large"), cache.NewObjectName("ns", "after")
	now = now.Add(last + time.Hour)
	l.wait(large, 100*switchPods, now)
	if got, want := l.wait(after, 1, now), (100-switchBurst)*switchEvery; got != want {
		t.Errorf("the Service after that of %d pods waits %s, want %s", 100*switchPods, got, want)
	}
}

// TestManyServicesAreSwitched takes hundreds of Services at the start and gives them back when the record resolves no more.
// In between, slices follow the pods.
func TestManyServicesAreSwitched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = 100
		var sets []*jobsetv1alpha2.JobSet
		var objects []runtime.Object
		for n := range services {
			name := fmt.Sprint("js", n)
			sets = append(sets, newJobSet(name, "", 1))
			objects = append(objects, newService(name), podOf(name, 0, true))
		}
		canary := &Canary{resolves: true}
		r := newRig(t, func(c *Config) { c.Mode, c.Recorder = "controller", events.NewFakeRecorder(2*services) }, sets, objects...)
		taken := func() (n int) {
			for i := range services {
				if !r.selects(fmt.Sprint("js", i)) {
					n++
				}
			}
			return n
		}
		atMost := func(when string, changed int, after time.Duration) {
			t.Helper()
			if want := switchBurst + int(after/switchEvery) + 1; changed > want || changed < 20 {
				t.Errorf("%d Services were switched within %s %s, want 20 to %d", changed, after, when, want)
			}
		}
		atMost("of the start", taken(), time.Second)
		r.pass(time.Duration(services-switchBurst) * switchEvery)
		if n := taken(); n != services {
			t.Fatalf("%d Services are taken, want %d", n, services)
		}
		r.writes()
		r.c.Canary = canary
		canary.resolves, canary.why, canary.failures = false, canaryNotResolved("it fails"), canaryFailures
		r.c.LookAtAll()
		r.pass(2 * time.Second)
		atMost("of the end", services-taken(), 2*time.Second)
		kept := ""
		for i := range services {
			if name := fmt.Sprint("js", i); !r.selects(name) {
				kept = name
			}
		}
		r.writes()
		r.change(podOf(kept, 0, true).Name, end)
		r.pass(1500 * time.Millisecond)
		if writes := strings.Join(r.writes(), ", "); !strings.Contains(writes, "update 0") {
			t.Errorf("the pod of a Service that waits for its turn has ended, and writes are %s", writes)
		}
		r.pass(time.Duration(services)*switchEvery + leavingTimeout)
		if n := taken(); n != 0 || len(r.listed()) > 0 {
			t.Errorf("%d Services are taken, and %d addresses are listed", n, len(r.listed()))
		}
	})
}
