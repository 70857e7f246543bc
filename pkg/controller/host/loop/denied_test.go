// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// TestOutageCausesNoStormOfRequests has an object over a quota whose plans are full and whose status changes, while the server that stores
// the status is away: each pass asks for another child. A status that is to be stored is not a status that is stored.
func TestOutageCausesNoStormOfRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		// first is how often is asked in the first minute at most, and later in the next nine.
		first, later int
	}{
		"a quota is used up": {apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "j", errors.New("exceeded quota: q")), 2, 5},
		"no answer":          {errors.New("connection refused"), 11, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.client.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewServiceUnavailable("away")
				})
				var asked, passes int
				r.apply = func() (int, error) {
					passes++
					what := children.Request{Verb: "create", Resource: "jobs", Name: "j", UID: "u"}
					return 2, children.DenialsOf(r.Host).Do(r.cached, what, func() error { asked++; return tc.answer })
				}
				r.left = outcome{Owner: r.cached, Next: r.cached.DeepCopy(), Due: queue.Due{Continue: true}}
				q := queue.New("storm")
				ctx, end := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { q.Run(ctx, 1, r.Sync); close(done) }()
				q.Add(key)
				time.Sleep(time.Minute)
				if asked > tc.first || asked == 0 {
					t.Errorf("asked %d times in the first minute, want 1 to %d", asked, tc.first)
				}
				asked, passes = 0, 0
				time.Sleep(9 * time.Minute)
				if asked > tc.later || passes > 20 {
					t.Errorf("asked %d times in %d passes in nine minutes, want %d in 20 at most", asked, passes, tc.later)
				}
				end()
				<-done
			})
		})
	}
}

// TestDeniedChildNeedsNoBackoff has a child that is denied while something happens each second, and looks when it is asked for.
func TestDeniedChildNeedsNoBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begin := newRig(), time.Now()
		var asked []time.Duration
		denial := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "j", errors.New(`admission webhook "w" denied the request: no`))
		r.apply = func() (int, error) {
			what := children.Request{Verb: "create", Resource: "jobs", Name: "j", UID: "u"}
			return 2, children.DenialsOf(r.Host).Do(r.cached, what, func() error {
				asked = append(asked, time.Since(begin).Round(time.Second))
				return denial
			})
		}
		r.left = outcome{Owner: r.cached}
		q := queue.New("denied")
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { q.Run(ctx, 1, r.Sync); close(done) }()
		q.Add(key)
		time.Sleep(5 * time.Minute) // nothing happens
		for range 5 * 60 {
			q.Add(key)
			time.Sleep(time.Second)
		}
		r.cached = r.cached.DeepCopy()
		r.cached.SetGeneration(2)
		r.left = outcome{Owner: r.cached}
		q.Add(key)
		time.Sleep(time.Second)
		end()
		<-done
		want := []time.Duration{0, 5 * time.Second, 65 * time.Second, 185 * time.Second, 305 * time.Second, 425 * time.Second, 545 * time.Second, 600 * time.Second}
		if len(asked) != len(want) {
			t.Fatalf("asked at %v, want %v", asked, want)
		}
		for i := range want {
			if d := asked[i] - want[i]; d < 0 || d > 2*time.Second {
				t.Errorf("asked at %v, want %v", asked, want)
			}
		}
	})
}
