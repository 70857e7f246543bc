// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// crowdPeriod is the time between two sets of a crowd.
const crowdPeriod = 2 * time.Second

// crowd creates sets one after the other, each of two Jobs that complete, and sees the Jobs that are created for them.
type crowd struct {
	namespace string
	stop      context.CancelFunc
	over      sync.WaitGroup

	mu   sync.Mutex
	sets map[string]time.Time
	// jobs are the UIDs that each name has had, first when a set had its first Job.
	jobs  map[string]map[types.UID]bool
	first map[string]time.Time
}

func newCrowd(s *steps) *crowd {
	s.Helper()
	created, err := core.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "crowd-"}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := core.CoreV1().Namespaces().Delete(context.Background(), created.Name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	c := &crowd{namespace: created.Name, sets: map[string]time.Time{}, jobs: map[string]map[types.UID]bool{}, first: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(s.Context())
	c.stop = cancel
	s.Cleanup(cancel)
	jobs, err := core.BatchV1().Jobs(c.namespace).Watch(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	go c.see(jobs)
	c.over.Go(func() { c.create(ctx, s) })
	return c
}

func (c *crowd) create(ctx context.Context, s *steps) {
	for n := 0; ctx.Err() == nil; n++ {
		js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%d", n)}, Spec: jobsetv1alpha2.JobSetSpec{
			ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To[int32](2), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: localcluster.ProgramImage, Args: []string{"exit", "0"}}},
				}},
			}}}},
		}}
		begin := time.Now()
		if _, err := jobsets.JobsetV1alpha2().JobSets(c.namespace).Create(context.WithoutCancel(ctx), js, metav1.CreateOptions{}); err != nil {
			s.Error(err)
			return
		}
		c.mu.Lock()
		c.sets[js.Name] = begin
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(crowdPeriod):
		}
	}
}

// see notes all Jobs.
func (c *crowd) see(jobs watch.Interface) {
	for event := range jobs.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if !ok {
			continue
		}
		set := job.Labels[jobsetv1alpha2.JobSetNameKey]
		c.mu.Lock()
		if c.jobs[job.Name] == nil {
			c.jobs[job.Name] = map[types.UID]bool{}
		}
		c.jobs[job.Name][job.UID] = true
		if _, known := c.first[set]; !known {
			c.first[set] = time.Now()
		}
		c.mu.Unlock()
	}
}

// complete creates no more sets, waits until all have completed, and checks that nothing was done twice.
func (c *crowd) complete(s *steps) {
	s.Helper()
	c.stop()
	c.over.Wait()
	framework.Eventually(s, "all sets have completed", func(ctx context.Context) error {
		list, err := jobsets.JobsetV1alpha2().JobSets(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			js := &list.Items[i]
			if js.Status.Restarts != 0 {
				s.Fatalf("%s was restarted", js.Name)
			}
			if !meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.JobSetCompleted) {
				return fmt.Errorf("%s has not: %+v", js.Name, js.Status.Conditions)
			}
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	var slowest time.Duration
	for name, first := range c.first {
		slowest = max(slowest, first.Sub(c.sets[name]))
	}
	for name, uids := range c.jobs {
		if len(uids) != 1 {
			s.Errorf("the Job %s was created %d times", name, len(uids))
		}
	}
	s.Logf("%d sets, %d Jobs, each created once; the slowest set had its first Job after %s", len(c.sets), len(c.jobs), slowest.Round(time.Millisecond))
}
