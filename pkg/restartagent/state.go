// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// state is what one process of the agent knows. It depends on nothing but its input.
type state struct {
	maxBackoff time.Duration

	// set is the latest state of the set; nil before the first one.
	set *JobSet
	// uid is the UID of the first set. Another set of the name has other pods.
	uid types.UID
	// unreadable means that the server cannot read the set: what it wants now is not known.
	unreadable bool
	// attempt is the attempt of the process, once it is known.
	attempt *int32
	// pod is the answer to the write of the attempt, at reportTime; nil before.
	pod        *Pod
	reportTime time.Time
	lifted     bool
}

// action is what the agent does next.
type action int

const (
	// stay as it is until something happens.
	stay action = iota
	// report the attempt, which is known now.
	report
	// lift the barrier.
	lift
	// restart the containers of the pod.
	restart
)

// observe takes a state of the set, and returns what to do about the attempt of the process: report it, if this is the
// first state that gives it one.
func (s *state) observe(set *JobSet) action {
	if unreadable.Is(set) {
		s.unreadable = s.unreadable || s.uid == "" || set.UID == "" || set.UID == s.uid
		return stay
	}
	if s.uid == "" {
		s.uid = set.UID
	}
	if set.UID != s.uid {
		return stay
	}
	s.set, s.unreadable = set, false
	if s.attempt != nil || !set.waits() {
		return stay
	}
	s.attempt = new(int32)
	if current := set.Status.Current; current != nil {
		// At the end of the numbers the pods restart no more, as the controller has ended the set long before.
		*s.attempt = min(*current, math.MaxInt32-1) + 1
	}
	return report
}

// reported takes the answer to the write of the attempt.
func (s *state) reported(pod *Pod, now time.Time) {
	s.pod, s.reportTime = pod, now
}

// next returns what to do now. If that is to stay, it may become another after the time that is returned, unless that is 0.
func (s *state) next(now time.Time) (action, time.Duration) {
	switch {
	case s.set == nil || s.unreadable:
		return stay, 0
	case !s.set.waits():
		if s.lifted {
			return stay, 0
		}
		return lift, 0
	case s.pod == nil:
		// Only what the controller has seen of this process counts.
		return stay, 0
	case s.set.Status.Previous != nil && *s.attempt <= *s.set.Status.Previous:
		return restart, 0
	case s.lifted || s.set.Status.Current == nil || *s.attempt != *s.set.Status.Current:
		return stay, 0
	}
	if left := s.reportTime.Add(s.backoff()).Sub(now); left > 0 {
		return stay, left
	}
	return lift, 0
}

const (
	// firstBackoff is how long the barrier is held after the second restart in short succession. It doubles with each further one.
	firstBackoff = time.Second
	// calm is the time after which a restart counts no more.
	calm = 10 * time.Minute
)

// backoff returns how long after its report the agent holds the barrier, whatever the others do.
func (s *state) backoff() time.Duration {
	quick := max(s.quickAttempts(), s.quickRestarts())
	if quick < 2 || s.maxBackoff == 0 {
		return 0
	}
	return min(s.maxBackoff, firstBackoff<<min(quick-2, 20))
}

// quickAttempts returns how many attempts in a row the failure policy has ended after a short time, up to the last one that has ended.
func (s *state) quickAttempts() (n int64) {
	attempts := s.set.Status.Attempts
	for i := len(attempts) - 1; i > 0 && attempts[i].Trigger == failurePolicyStarts; i-- {
		ended := attempts[i-1]
		if ended.RequestTime == nil || ended.EndTime == nil || ended.EndTime.Sub(ended.RequestTime.Time) >= calm {
			break
		}
		n++
	}
	return n
}

// quickRestarts returns how many more times containers of the pod have restarted than a calm life of the pod explains.
// It is what is known of restarts without a history of the set, and of those before the barrier is lifted.
func (s *state) quickRestarts() int64 {
	if s.pod.Status.StartTime == nil {
		return 0
	}
	age := s.reportTime.Sub(s.pod.Status.StartTime.Time)
	return int64(s.pod.restarts()) - int64(max(age, 0)/calm)
}
