// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// inPlace returns a set that restarts in place, in a state.
func inPlace(previous, current *int32) *JobSet {
	set := &JobSet{Spec: JobSetSpec{FailurePolicy: &FailurePolicy{RestartStrategy: inPlaceStrategy}}, Status: JobSetStatus{Previous: previous, Current: current}}
	set.UID = "uid-1"
	return set
}

// podAfter returns a pod of an age whose containers have restarted that often.
func podAfter(restarts int32, age time.Duration) *Pod {
	pod := &Pod{}
	pod.Status.StartTime = ptr.To(metav1.NewTime(begin.Add(-age)))
	pod.Status.InitContainerStatuses = []ContainerStatus{{RestartCount: restarts}}
	pod.Status.ContainerStatuses = []ContainerStatus{{RestartCount: max(restarts-1, 0)}}
	return pod
}

func TestAttemptOfTheProcess(t *testing.T) {
	n := ptr.To[int32]
	for name, tc := range map[string]struct {
		current *int32
		want    int32
	}{
		"the pods have not begun yet":       {want: 0},
		"the pods have begun together":      {current: n(0), want: 1},
		"the pods have restarted together":  {current: n(7), want: 8},
		"the numbers are at their end":      {current: n(math.MaxInt32), want: math.MaxInt32},
		"the numbers are nearly at the end": {current: n(math.MaxInt32 - 1), want: math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{}
			if got := s.observe(inPlace(nil, tc.current)); got != report || *s.attempt != tc.want {
				t.Errorf("action %d, attempt %d, want a report of %d", got, *s.attempt, tc.want)
			}
			if got := s.observe(inPlace(n(20), n(30))); got != stay || *s.attempt != tc.want {
				t.Errorf("a later state: action %d, attempt %d", got, *s.attempt)
			}
		})
	}
}

func TestNext(t *testing.T) {
	n := ptr.To[int32]
	disabled := inPlace(nil, n(3))
	disabled.Annotations = map[string]string{disableKey: ""}
	other := inPlace(nil, n(1))
	other.UID = "uid-2"
	damaged := func(uid types.UID) *JobSet {
		set := &JobSet{}
		set.UID, set.Annotations = uid, map[string]string{unreadable.Annotation: "its bytes are damaged"}
		return set
	}
	recreates := inPlace(nil, nil)
	recreates.Spec.FailurePolicy.RestartStrategy = "Recreate"
	type states []*JobSet
	for name, tc := range map[string]struct {
		states   states
		reported bool
		lifted   bool
		want     action
	}{
		"nothing is known":                             {want: stay},
		"others have not begun":                        {states: states{inPlace(nil, nil)}, reported: true, want: stay},
		"all pods have reached the first attempt":      {states: states{inPlace(nil, nil), inPlace(nil, n(0))}, reported: true, want: lift},
		"all have, but this pod's report is not known": {states: states{inPlace(nil, nil), inPlace(nil, n(0))}, want: stay},
		"the barrier is lifted already":                {states: states{inPlace(nil, nil), inPlace(nil, n(0))}, reported: true, lifted: true, want: stay},
		"another pod has begun the next attempt":       {states: states{inPlace(nil, nil), inPlace(n(0), n(0))}, reported: true, lifted: true, want: restart},
		"the same while this pod waits":                {states: states{inPlace(n(0), n(0)), inPlace(n(1), n(0))}, reported: true, want: restart},
		"this pod is the first of the next attempt":    {states: states{inPlace(nil, n(0)), inPlace(n(0), n(0))}, reported: true, want: stay},
		"all have followed":                            {states: states{inPlace(n(0), n(0)), inPlace(n(0), n(1))}, reported: true, want: lift},
		"an attempt that is not this one":              {states: states{inPlace(nil, n(1)), inPlace(n(0), n(5))}, reported: true, want: stay},
		"pods do not wait for each other":              {states: states{disabled}, want: lift},
		"pods do not wait, and the worker runs":        {states: states{disabled}, lifted: true, want: stay},
		"the annotation appears while pods wait":       {states: states{inPlace(nil, nil), disabled}, reported: true, want: lift},
		"the strategy is another one":                  {states: states{recreates}, want: lift},
		"there is no failure policy":                   {states: states{{}}, want: lift},
		"another set of the name":                      {states: states{inPlace(nil, n(0)), other}, reported: true, want: stay},
		"the set cannot be read":                       {states: states{damaged("uid-1")}, want: stay},
		"nothing of the set can be read":               {states: states{damaged("")}, want: stay},
		"the set can be read no more":                  {states: states{inPlace(nil, nil), damaged("uid-1")}, reported: true, want: stay},
		"the same, and not even its UID":               {states: states{inPlace(nil, nil), damaged("")}, reported: true, want: stay},
		"the same after all have reached the attempt":  {states: states{inPlace(nil, nil), inPlace(nil, n(0)), damaged("")}, reported: true, want: stay},
		"the same after another pod has begun":         {states: states{inPlace(nil, nil), inPlace(n(0), n(0)), damaged("")}, reported: true, lifted: true, want: stay},
		"the set can be read again":                    {states: states{damaged(""), inPlace(nil, nil), damaged(""), inPlace(nil, n(0))}, reported: true, want: lift},
		"another set of the name cannot be read":       {states: states{inPlace(nil, nil), inPlace(nil, n(0)), damaged("uid-2")}, reported: true, want: lift},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{lifted: tc.lifted}
			for _, set := range tc.states {
				s.observe(set)
			}
			if tc.reported {
				s.reported(podAfter(0, time.Minute), begin)
			}
			if got, after := s.next(begin); got != tc.want || after != 0 {
				t.Errorf("action %d after %v, want %d", got, after, tc.want)
			}
		})
	}
}

// history returns attempts that lasted this long each; the policy ended all but the last.
func history(lasted ...time.Duration) (attempts []Attempt) {
	now := begin.Add(-24 * time.Hour)
	for i, d := range lasted {
		a := Attempt{Trigger: failurePolicyStarts, RequestTime: ptr.To(metav1.NewMicroTime(now))}
		if i == 0 {
			a.Trigger = "Start"
		}
		now = now.Add(d)
		a.EndTime = ptr.To(metav1.NewMicroTime(now))
		attempts = append(attempts, a)
	}
	return append(attempts, Attempt{Trigger: failurePolicyStarts, RequestTime: ptr.To(metav1.NewMicroTime(now))})
}

func TestBackoff(t *testing.T) {
	const quick, long = 3 * time.Second, 20 * time.Minute
	for name, tc := range map[string]struct {
		attempts []Attempt
		pod      *Pod
		most     time.Duration
		want     time.Duration
	}{
		"the first start":                           {pod: podAfter(0, 0)},
		"the first restart":                         {pod: podAfter(1, time.Minute), attempts: history(quick)},
		"the second restart":                        {pod: podAfter(2, time.Minute), attempts: history(quick, quick), want: time.Second},
		"the fifth restart":                         {pod: podAfter(5, time.Minute), attempts: history(quick, quick, quick, quick, quick), want: 8 * time.Second},
		"the limit":                                 {pod: podAfter(12, time.Minute), want: 5 * time.Minute},
		"another limit":                             {pod: podAfter(12, time.Minute), most: 30 * time.Second, want: 30 * time.Second},
		"as many restarts as there are numbers":     {pod: podAfter(math.MaxInt32, time.Minute), want: 5 * time.Minute},
		"many restarts in a long life":              {pod: podAfter(20, 24*time.Hour), attempts: history(long, long, long)},
		"restarts in short succession at its end":   {pod: podAfter(20, 24*time.Hour), attempts: history(long, long, quick, quick, quick), want: 2 * time.Second},
		"restarts in short succession at its start": {pod: podAfter(20, 24*time.Hour), attempts: history(quick, quick, quick, long)},
		"restarts before the barrier is lifted":     {pod: podAfter(4, time.Minute), attempts: history(quick), want: 4 * time.Second},
		"a pod of which nothing is known":           {pod: &Pod{}},
		"an attempt that a user has ended": {pod: podAfter(0, time.Minute),
			attempts: append(history(quick, quick, quick), Attempt{Trigger: "User", RequestTime: ptr.To(metav1.NewMicroTime(begin))})},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{maxBackoff: 5 * time.Minute}
			if tc.most > 0 {
				s.maxBackoff = tc.most
			}
			set := inPlace(nil, ptr.To[int32](0))
			set.Status.Attempts = tc.attempts
			s.observe(inPlace(nil, nil))
			s.observe(set)
			s.reported(tc.pod, begin)
			got, after := s.next(begin)
			if tc.want == 0 && got != lift || tc.want > 0 && got != stay || after != tc.want {
				t.Errorf("action %d after %v, want %v", got, after, tc.want)
			}
			if got, after := s.next(begin.Add(tc.want)); got != lift || after != 0 {
				t.Errorf("at the end: action %d after %v", got, after)
			}
			set.Status.Previous = ptr.To[int32](0)
			if got, _ := s.next(begin); got != restart {
				t.Errorf("another pod restarts meanwhile: action %d", got)
			}
		})
	}
}
