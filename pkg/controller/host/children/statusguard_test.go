// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// statuses is a StatusGuard with the object that it guards, as it is stored.
type statuses struct {
	*StatusGuard
	clock  *clocktesting.FakePassiveClock
	stored *batchv1.Job
}

func newStatuses() *statuses {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return &statuses{NewStatusGuard(now), now, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "1"}}}
}

// put stores a changed copy of the object, as any client may.
func (s *statuses) put(change func(*batchv1.Job)) {
	next := s.stored.DeepCopy()
	change(next)
	version, _ := strconv.Atoi(next.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(version + 1)
	s.stored = next
}

// write lets the controller store a status of so many pods, with the present time. It returns whether it was stored.
func (s *statuses) write(active int32) bool {
	before, next := s.stored, s.stored.DeepCopy()
	next.Status = batchv1.JobStatus{Active: active, StartTime: ptr.To(metav1.NewTime(s.clock.Now()))}
	if s.Storing("job", before, next) != nil {
		return false
	}
	s.put(func(job *batchv1.Job) { job.Status = next.Status })
	s.Stored(before, next, s.stored)
	return true
}

// TestStatusGuard has the controller want 1 pod in the status in each second of five minutes, unless a case says otherwise.
func TestStatusGuard(t *testing.T) {
	rival := func(job *batchv1.Job) { job.Status.Active = 7 }
	for name, tc := range map[string]struct {
		// happens is what happens before the write in each second, and wants is the status that is written; 1 if it is nil.
		happens func(s *statuses, second int)
		wants   func(second int) int32
		want    string
	}{
		"another party changes it back": {func(s *statuses, _ int) { s.put(rival) }, nil, "[0 1 2 3 63 183]"},
		"two statuses in turn, both changed back": {func(s *statuses, _ int) { s.put(rival) }, func(n int) int32 { return int32(n % 2) },
			"[0 1 2 3 4 5 6 65 66 185 186]"},
		"each status is a new one":   {func(s *statuses, _ int) { s.put(rival) }, func(n int) int32 { return int32(n) }, fmt.Sprint(seconds(300))},
		"only the controller writes": {func(*statuses, int) {}, func(n int) int32 { return int32(n % 2) }, fmt.Sprint(seconds(300))},
		"another party changes the labels": {func(s *statuses, n int) {
			s.put(func(job *batchv1.Job) { job.Labels = map[string]string{"n": strconv.Itoa(n)} })
		}, func(n int) int32 { return int32(n % 2) }, fmt.Sprint(seconds(300))},
		"another generation each time": {func(s *statuses, _ int) { s.put(rival); s.stored.Generation++ }, nil, fmt.Sprint(seconds(300))},
		"another object each time":     {func(s *statuses, _ int) { s.put(rival); s.stored.UID += "x" }, nil, fmt.Sprint(seconds(300))},
		"every 40 seconds": {func(s *statuses, n int) {
			if n%40 == 0 {
				s.put(rival)
			}
		}, nil, fmt.Sprint(seconds(300))},
	} {
		t.Run(name, func(t *testing.T) {
			s, begin := newStatuses(), time.Unix(1_000_000, 0)
			var written []int
			for second := range 300 {
				s.clock.SetTime(begin.Add(time.Duration(second) * time.Second))
				tc.happens(s, second)
				wants := int32(1)
				if tc.wants != nil {
					wants = tc.wants(second)
				}
				if s.write(wants) {
					written = append(written, second)
				}
			}
			if fmt.Sprint(written) != tc.want {
				t.Errorf("written at %v, want %s", written, tc.want)
			}
		})
	}
}

func TestStatusGuardSaysWhenItIsWrittenAgain(t *testing.T) {
	s := newStatuses()
	for range 4 {
		s.put(func(job *batchv1.Job) { job.Status.Active = 7 })
		s.write(1)
	}
	s.put(func(job *batchv1.Job) { job.Status.Active = 7 })
	next := s.stored.DeepCopy()
	next.Status = batchv1.JobStatus{Active: 1}
	next.Status.StartTime = ptr.To(metav1.NewTime(s.clock.Now()))
	const want = "another party changed the status of jobset ns/a 3 times within a minute, each time after the controller had written it; " +
		"check that only one jobset-controller runs; the controller writes the status again at 1970-01-12T13:47:40Z"
	if err := s.Storing("jobset", s.stored, next); err == nil || err.Error() != want || !IsUndone(err) {
		t.Errorf("got %v, want %s", err, want)
	}
}
