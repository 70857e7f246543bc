// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// TestStatusThatAnotherPartyUndoes has a second controller that changes the status back whenever it was written, which makes the first one
// look again.
func TestStatusThatAnotherPartyUndoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begin := newRig(), time.Now()
		var written []time.Duration
		r.Client = func(string) children.OwnerClient[jobSet] {
			return rival{r, func() { written = append(written, time.Since(begin)) }}
		}
		r.Host.Consistency = shown{r.Host.Consistency}
		r.apply = func() (int, error) { return 2, nil }
		r.conclude = func() outcome {
			next := r.cached.DeepCopy()
			next.Status.Restarts = 1
			next.Status.Conditions = []metav1.Condition{{Type: "Any", LastTransitionTime: metav1.Now()}}
			return outcome{Owner: r.cached, Next: next}
		}
		q := queue.New("undone status")
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { q.Run(ctx, 1, r.Sync); close(done) }()
		for range 600 {
			q.Add(key)
			time.Sleep(time.Second)
		}
		end()
		<-done
		if n := len(written); n < 5 || n > 8 {
			t.Errorf("written at %v, want 4 times in the first minute, and after 1, 2 and 4 more", written)
		}
		if !slices.Contains(r.steps, "event StatusUndoneByOthers") {
			t.Errorf("no event says so: %v", r.steps)
		}
	})
}

// shown is a memory of own writes that waits for no cache.
type shown struct{ children.Consistency }

// Wrote implements children.Consistency.
func (shown) Wrote(cache.ObjectName, string, string) {}

// rival is a client of JobSets whose status another party changes back at once.
type rival struct {
	r     *rig
	wrote func()
}

// Delete implements children.OwnerClient.
func (c rival) Delete(context.Context, string, metav1.DeleteOptions) error { return nil }

// UpdateStatus implements children.OwnerClient.
func (c rival) UpdateStatus(_ context.Context, next jobSet, _ metav1.UpdateOptions) (jobSet, error) {
	c.wrote()
	stored := next.DeepCopy()
	stored.ResourceVersion = "stored"
	changed := stored.DeepCopy()
	changed.ResourceVersion, changed.Status.Restarts = "changed", 0
	c.r.cached = changed
	return stored, nil
}
