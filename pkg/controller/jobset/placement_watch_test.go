// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// openWatches are the watches of a client, by resource.
type openWatches struct {
	mu sync.Mutex
	of map[string]int
}

func (w *openWatches) add(resource string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[resource] += n
}

// cluster returns how many there are of what placements depend on, beside what JobSets need anyway.
func (w *openWatches) cluster() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for _, resource := range []string{"nodes", "daemonsets", "limitranges", "runtimeclasses", "priorityclasses", "pods"} {
		if w.of[resource] > 0 {
			out[resource] = w.of[resource]
		}
	}
	return out
}

// countedWatch is a watch that is counted while it is open.
type countedWatch struct {
	watch.Interface
	stop func()
}

func (w *countedWatch) Stop() { w.stop(); w.Interface.Stop() }

// TestClusterIsWatchedWhileSetsAsk shows that with the feature on nothing of the cluster is watched for placements
// unless a set asks for one, and that the watches end when the last such set is gone.
func TestClusterIsWatchedWhileSetsAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := newSet()
		r := &rig{kube: fake.NewClientset(), jobSets: jobsetfake.NewClientset(plain), events: &recorder{}}
		open := r.countWatches()
		r.build(t, gates.Gates{ExclusivePlacement: true})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		r.watches.Start(ctx)
		running.Go(func() { r.Run(ctx) })
		pass := func(by time.Duration) {
			time.Sleep(by)
			synctest.Wait()
		}
		defer func() {
			cancel()
			running.Wait()
			pass(time.Minute)
		}()
		pass(time.Minute)
		always := map[string]int{"pods": 1, "priorityclasses": 1}
		diff(t, "Jobs of a set that does not ask", true, r.jobExists(t, "js-w-0"))
		diff(t, "watches without a set that asks", always, open.cluster())

		asks := plain.DeepCopy()
		asks.Name, asks.UID, asks.Annotations = "asks", "uid-asks", map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
		sets := r.jobSets.JobsetV1alpha2().JobSets("ns")
		if _, err := sets.Create(ctx, asks, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		diff(t, "watches while a set asks", map[string]int{
			"nodes": 1, "daemonsets": 1, "limitranges": 1, "runtimeclasses": 1, "priorityclasses": 2, "pods": 2,
		}, open.cluster())
		if err := sets.Delete(ctx, asks.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		diff(t, "watches when the set is gone", always, open.cluster())
	})
}

// countWatches counts the watches of the main API from here on.
func (r *rig) countWatches() *openWatches {
	open := &openWatches{of: map[string]int{}}
	tracker := r.kube.Tracker()
	r.kube.PrependWatchReactor("*", func(action clientgotesting.Action) (bool, watch.Interface, error) {
		resource := action.GetResource()
		watching, err := tracker.Watch(resource, action.GetNamespace())
		open.add(resource.Resource, 1)
		return true, &countedWatch{watching, sync.OnceFunc(func() { open.add(resource.Resource, -1) })}, err
	})
	return open
}
