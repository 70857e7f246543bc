// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// BenchmarkRecreate measures the time from the failure of one Job of a set to the creation of the last Job of the next
// attempt. Beside 400 of them, a plain client deletes as many bare Jobs in the foreground and creates each again as soon
// as its name is free, by turns with the set.
func BenchmarkRecreate(b *testing.B) {
	for _, jobs := range []int{1, 100, 400} {
		b.Run(fmt.Sprintf("set-of-%d", jobs), func(b *testing.B) {
			sets, bare := newWorkload(b), (*workload)(nil)
			sets.createSet("train", jobs)
			sets.untilRunning("", jobs)
			if jobs == 400 {
				bare = newWorkload(b)
				bare.createBare(jobs)
			}
			var ofSet, ofBare []time.Duration
			for b.Loop() {
				for range rounds(jobs) {
					ofSet = append(ofSet, sets.failAndRecreate(jobs))
					if bare != nil {
						ofBare = append(ofBare, bare.deleteAndRecreate(jobs))
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ofSet).Seconds(), "set-s")
			if bare != nil {
				b.ReportMetric(median(ofBare).Seconds(), "bare-s")
				b.ReportMetric(median(ofSet).Seconds()/median(ofBare).Seconds(), "set/bare")
			}
		})
	}
}

// rounds is how often a restart is measured. One of many Jobs takes long and is an average by itself.
func rounds(jobs int) int {
	if testing.Short() || jobs > 100 {
		return 1
	}
	return 3
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

// failAndRecreate lets one pod fail. The time begins when its Job shows that.
func (w *workload) failAndRecreate(jobs int) time.Duration {
	w.Helper()
	events := w.watchJobs()
	defer events.Stop()
	w.steer("", 1, "failed")
	var failed time.Time
	for created := 0; created < jobs; {
		switch event := w.next(events); {
		case event.Type == watch.Added:
			created++
		case failed.IsZero() && hasFailed(event.Object.(*batchv1.Job)):
			failed = time.Now()
		}
	}
	took := time.Since(failed)
	w.untilRunning("", jobs)
	w.untilCounted("train", jobs, func(s jobsetv1alpha2.ReplicatedJobStatus) int32 { return s.Ready })
	return took
}

func hasFailed(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget) && c.Status == corev1.ConditionTrue
	})
}

func (w *workload) createBare(jobs int) {
	w.Helper()
	w.must(jobs, func(i int) error { return w.createBareJob(fmt.Sprintf("bare-%d", i)) })
	w.untilRunning("", jobs)
}

func (w *workload) createBareJob(name string) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: jobSpec()}
	_, err := w.kube.BatchV1().Jobs(w.namespace).Create(w.ctx, job, metav1.CreateOptions{})
	return err
}

// deleteAndRecreate does what a restart does, without a set. The time begins with the first request.
func (w *workload) deleteAndRecreate(jobs int) time.Duration {
	w.Helper()
	events := w.watchJobs()
	defer events.Stop()
	begin := time.Now()
	// Room for all, so that nobody waits for anybody.
	free, failures := make(chan string, jobs), make(chan error, 2*jobs)
	go workqueue.ParallelizeUntil(w.ctx, parallel, jobs, func(i int) {
		failures <- w.kube.BatchV1().Jobs(w.namespace).Delete(w.ctx, fmt.Sprintf("bare-%d", i),
			metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	})
	go workqueue.ParallelizeUntil(w.ctx, parallel, jobs, func(int) { failures <- w.createBareJob(<-free) })
	for created := 0; created < jobs; {
		switch event := w.next(events); event.Type {
		case watch.Added:
			created++
		case watch.Deleted:
			free <- event.Object.(*batchv1.Job).Name
		}
	}
	took := time.Since(begin)
	for range 2 * jobs {
		if err := <-failures; err != nil {
			w.Fatal(err)
		}
	}
	w.untilRunning("", jobs)
	return took
}

// watchJobs sees what happens to Jobs from now on.
func (w *workload) watchJobs() watch.Interface {
	w.Helper()
	jobs := w.kube.BatchV1().Jobs(w.namespace)
	list, err := jobs.List(w.ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		w.Fatal(err)
	}
	events, err := jobs.Watch(w.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// next returns the next event about a Job.
func (w *workload) next(events watch.Interface) watch.Event {
	w.Helper()
	select {
	case event, open := <-events.ResultChan():
		if _, isJob := event.Object.(*batchv1.Job); !open || !isJob {
			w.Fatalf("watching Jobs ended: %v", event)
		}
		return event
	case <-time.After(patience):
		w.Fatalf("no event about a Job for %v", patience)
	}
	return watch.Event{}
}
