// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestTrackerWaitsForAllObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&batchv1.Job{ObjectMeta: objectMeta("old", "ns")})
		jobs := client.BatchV1().Jobs("ns")
		informer := informers.NewSharedInformerFactory(client, 0).Batch().V1().Jobs().Informer()
		tracker, err := newTracker[*batchv1.Job](t.Context(), informer, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the watch stands: the fake cluster does not report earlier deletions
		gone := make(chan string, 1)
		tracker.onGone(func(job *batchv1.Job) { gone <- job.Name })
		if err := jobs.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff("old", <-gone); d != "" {
			t.Errorf("what is gone (-want +got):\n%s", d)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- tracker.until(t.Context(), "two Jobs are ready", 2, isReady) }()
		for _, name := range []string{"a", "b"} {
			job := &batchv1.Job{ObjectMeta: objectMeta(name, "ns"), Status: batchv1.JobStatus{Ready: ptr.To[int32](1)}}
			if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		checkUpdates(t, tracker, func(version string) error {
			job := &batchv1.Job{ObjectMeta: objectMeta("a", "ns"), Status: batchv1.JobStatus{Ready: ptr.To[int32](1)}}
			job.ResourceVersion = version
			_, err := jobs.Update(t.Context(), job, metav1.UpdateOptions{})
			return err
		})
		tracker.timeout = time.Millisecond
		err = tracker.until(t.Context(), "three Jobs are ready", 3, isReady)
		if err == nil || !strings.Contains(err.Error(), "2 of 3 are so, and there are 2") {
			t.Errorf("waiting for more than there are: %v", err)
		}
		err = tracker.until(t.Context(), "both Jobs are completed", 2, isComplete)
		want := "waiting until both Jobs are completed: after 1ms 0 of 2 are so, and there are 2; not so: a (active 0, ready 1, terminating 0, succeeded 0, failed 0, being deleted: false), b ("
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, must begin with %q", err, want)
		}
	})
}

// TestLongWaitSaysWhatItWaitsFor has a Job that is ready after 70 seconds.
func TestLongWaitSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := &batchv1.Job{ObjectMeta: objectMeta("a", "ns"), Status: batchv1.JobStatus{Ready: ptr.To[int32](1)}}
		var lines []string
		tracker := &tracker[*batchv1.Job]{
			timeout: 10 * time.Minute, changed: make(chan struct{}, 1), objects: map[string]*batchv1.Job{"b": {ObjectMeta: objectMeta("b", "ns")}},
			log: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) },
		}
		time.AfterFunc(70*time.Second, func() { tracker.seen(ready) })
		if err := tracker.untilSome(t.Context(), "a Job is ready", 1, isReady); err != nil {
			t.Error(err)
		}
		const line = "waiting until a Job is ready: 0 of 1 are so, and there are 1; not so: b ("
		if len(lines) != 2 || !strings.HasPrefix(lines[0], line) || lines[1] != lines[0] {
			t.Errorf("said %q, want twice what begins with %q", lines, line)
		}
	})
}

func TestFanCountsEventsInOrder(t *testing.T) {
	change := func(n int32) watch.Event {
		js := &jobsetv1alpha2.JobSet{}
		js.Status.Restarts = n
		return watch.Event{Type: watch.Modified, Object: js}
	}
	for name, tc := range map[string]struct {
		events []watch.Event
		want   string
	}{
		"all changes":      {[]watch.Event{change(1), change(2)}, ""},
		"a change is lost": {[]watch.Event{change(2)}, "delivered change 2 instead of 1"},
		"the watch ends":   {[]watch.Event{change(1), {Type: watch.Error, Object: &metav1.Status{}}}, "ended before change 2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fan{last: 2, sent: []time.Time{{}, time.Now(), time.Now()}}
			source := watch.NewFakeWithChanSize(len(tc.events), false)
			for _, event := range tc.events {
				source.Action(event.Type, event.Object)
			}
			err := f.receive(source, time.Minute)
			switch {
			case tc.want == "" && (err != nil || len(f.delays) != 2):
				t.Errorf("%d delays, error %v", len(f.delays), err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, must contain %q", err, tc.want)
			}
		})
	}
}

func TestAllReturnsEveryError(t *testing.T) {
	err := all(t.Context(), 3, 2, func(i int) error {
		if i == 1 {
			return context.DeadlineExceeded
		}
		return nil
	})
	if err == nil || err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("error %v, must be that of the second call", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := all(cancelled, 3, 2, func(int) error { return nil }); err == nil {
		t.Error("no error although calls may have been left out")
	}
}

// checkUpdates changes an object twice, which the tracker counts once the watch has shown it.
func checkUpdates(t *testing.T, tracker *tracker[*batchv1.Job], update func(version string) error) {
	t.Helper()
	if n := tracker.seenUpdates(); n != 0 {
		t.Errorf("%d updates were seen, although objects were only created and deleted", n)
	}
	for _, version := range []string{"7", "8"} {
		if err := update(version); err != nil {
			t.Fatal(err)
		}
	}
	if err := tracker.untilAny(t.Context(), "the last update was seen", func(job *batchv1.Job) bool { return job.ResourceVersion == "8" }); err != nil {
		t.Fatal(err)
	}
	if n := tracker.seenUpdates(); n != 2 {
		t.Errorf("%d updates were seen, want 2", n)
	}
}
