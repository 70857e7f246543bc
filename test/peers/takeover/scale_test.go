// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	// mostLeaderWorkerSets and mostActive bound what has children, however many sets there are.
	mostLeaderWorkerSets, mostActive = 200, 1000
	// creators is how many sets are created at the same time.
	creators = 8
)

// TestManySets moves JOBSET_TAKEOVER_SETS JobSets, 50 by default, and a fifth as many LeaderWorkerSets, up to 200. The log has how
// long that took.
func TestManySets(t *testing.T) {
	sets := 50
	if wanted := os.Getenv("JOBSET_TAKEOVER_SETS"); wanted != "" {
		var err error
		if sets, err = strconv.Atoi(wanted); err != nil {
			t.Fatalf("JOBSET_TAKEOVER_SETS: %v", err)
		}
	}
	o := begin(t, 0, 0)
	o.fill(t, sets, min(sets/5, mostLeaderWorkerSets))
	seen := o.watch(t)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	o.note(t)
	t.Logf("%d JobSets and %d LeaderWorkerSets with %d children, of which %d pods run", o.count(jobSets), o.count(leaderWorkerSets), len(o.was), o.running)
	migrate(t, "to-server", "--dry-run")
	migrate(t, "to-server")
	o.identical(t, "after the move")
	migrate(t, "status")
	controller := startController(t)
	o.label(t, seen, jobSets, "set-0", "by-our-server")
	o.steady(t, "under our controller")
	if err := controller.Terminate(); err != nil {
		t.Fatal(err)
	}
	o.note(t)
	migrate(t, "to-crd")
	o.unchanged(t, "after the way back")
	migrate(t, "status")
	if err := upstream.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.label(t, seen, jobSets, "set-1", "by-upstream")
	o.steady(t, "under the controllers of upstream")
	o.owned(t)
	// The next test counts the sets of the cluster.
	framework.Eventually(t, "all sets are gone", func(ctx context.Context) error {
		for _, resource := range []schema.GroupVersionResource{jobSets, leaderWorkerSets} {
			client := cluster.Dynamic.Resource(resource).Namespace(o.namespace)
			background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
			if err := client.DeleteCollection(ctx, background, metav1.ListOptions{}); err != nil {
				return err
			}
			if list, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err != nil || len(list.Items) > 0 {
				return fmt.Errorf("%s are left: %v", resource.Resource, err)
			}
		}
		return nil
	})
}

// fill creates the sets, and waits until those with pods run or have completed.
func (o *takeover) fill(t *testing.T, sets, lws int) {
	t.Helper()
	var completed, pods int
	creating, ctx := errgroup.WithContext(t.Context())
	creating.SetLimit(creators)
	for i := range sets {
		set := o.newSet(fmt.Sprint("set-", i))
		job := &set.Spec.ReplicatedJobs[0]
		job.Replicas, job.Template.Spec.Parallelism, job.Template.Spec.Completions = ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](1)
		switch {
		case i >= mostActive: // upstream's controller would take half an hour for the Jobs of 10,000 sets
			set.Spec.ManagedBy = ptr.To("example.com/other")
		case i%10 > 7:
			set.Spec.Suspend, set.Labels = ptr.To(true), map[string]string{"kueue.x-k8s.io/queue-name": "queue"}
		case i%10 > 5:
			set.Spec.Suspend = ptr.To(true)
		case i%10 == 5:
			ends(set, "succeeded")
			completed++
		default:
			pods++
		}
		creating.Go(func() error { return o.createOne(ctx, set) })
	}
	for i := range lws {
		set := o.newLeaderWorkerSet(fmt.Sprint("groups-", i))
		set.Spec.Replicas = ptr.To[int32](1)
		pods += 2
		creating.Go(func() error {
			_, err := cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(o.namespace).Create(ctx, set, metav1.CreateOptions{})
			return err
		})
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "all pods run and all sets have their state", func(ctx context.Context) error {
		_, running, err := o.children(ctx)
		if err != nil || running != pods {
			return fmt.Errorf("%d of %d pods run: %v", running, pods, err)
		}
		list, err := cluster.JobSets.JobsetV1alpha2().JobSets(o.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ended := 0
		for _, set := range list.Items {
			if set.Status.TerminalState == string(jobsetv1alpha2.JobSetCompleted) {
				ended++
			}
			if ptr.Deref(set.Spec.Suspend, false) && len(set.Status.Conditions) == 0 {
				return errors.New(set.Name + " has no condition yet")
			}
		}
		if ended != completed {
			return fmt.Errorf("%d of %d sets have completed", ended, completed)
		}
		return nil
	})
}

func (o *takeover) createOne(ctx context.Context, set *jobsetv1alpha2.JobSet) error {
	_, err := cluster.JobSets.JobsetV1alpha2().JobSets(o.namespace).Create(ctx, set, metav1.CreateOptions{})
	return err
}

// steady looks at the sets for a while: a controller that has started looks at all of them, and must leave them as they are.
func (o *takeover) steady(t *testing.T, when string) {
	t.Helper()
	time.Sleep(10*time.Second + min(time.Duration(len(o.sets))*10*time.Millisecond, 30*time.Second))
	o.unchanged(t, when)
}

// TestEmptyDefinitions moves no set at all, which takes seconds.
func TestEmptyDefinitions(t *testing.T) {
	o := begin(t, 0, 0)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, direction := range []string{"to-server", "to-crd"} {
		began := time.Now()
		migrate(t, direction)
		t.Logf("%s without objects took %s", direction, time.Since(began).Round(time.Second))
		o.unchanged(t, direction)
	}
	o.works(t)
}
