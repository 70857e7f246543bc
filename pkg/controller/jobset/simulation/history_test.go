// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// This file holds the rules about status.attempts, whoever writes them.

// maxAttempts is how many attempts a status has at most.
const maxAttempts = 10

// inAttempt returns the attempt that runs; nil if none does.
func inAttempt(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.Attempt {
	n := len(status.Attempts)
	if n == 0 || status.Attempts[n-1].EndTime != nil {
		return nil
	}
	return &status.Attempts[n-1]
}

func historySound(d decision) string {
	if wrong := wrongWithHistory(d.before, d.after); wrong != "" || d.plan.Status == nil {
		return wrong
	}
	a, runs := inAttempt(d.after), !isSuspended(d.JobSet) && !finished(d.after)
	if isSuspended(d.JobSet) && !finished(d.after) && d.ruling == nil {
		runs = inAttempt(d.before) != nil && stillRuns(d.Observed)
	}
	switch {
	case a == nil && takenBack(d): // another rule checks that this is not forgotten
	case (a != nil) != runs:
		return fmt.Sprintf("the set runs: %t, in the attempt %+v", runs, a)
	case runs && d.ruling != nil && (a.Trigger != jobsetv1alpha2.TriggerFailurePolicy || a.CreateTime != nil):
		return fmt.Sprintf("a restart begins the attempt %+v", *a)
	}
	return ""
}

// wrongWithHistory compares the history before and after a write.
func wrongWithHistory(before, after *jobsetv1alpha2.JobSetStatus) string {
	if before == after {
		return ""
	}
	if len(after.Attempts) > maxAttempts || len(after.Attempts) < len(before.Attempts) {
		return fmt.Sprintf("%d attempts after %d", len(after.Attempts), len(before.Attempts))
	}
	ready := before.ReadyMilliseconds
	for i := range after.Attempts {
		a := &after.Attempts[i]
		switch old := attemptNumbered(before, a.Number); {
		case i > 0 && a.Number != after.Attempts[i-1].Number+1:
			return fmt.Sprintf("attempt %d follows %d", a.Number, after.Attempts[i-1].Number)
		case i > 0 && a.RequestTime.Before(after.Attempts[i-1].EndTime):
			return fmt.Sprintf("attempt %d begins before %d ends", a.Number, after.Attempts[i-1].Number)
		case i < len(after.Attempts)-1 && a.EndTime == nil:
			return fmt.Sprintf("attempt %d has not ended, and another one began", a.Number)
		case (a.EndTime == nil) != (a.Outcome == ""):
			return fmt.Sprintf("attempt %d has ended or not: %+v", a.Number, *a)
		case old != nil && old.EndTime != nil && !equality.Semantic.DeepEqual(old, a):
			return fmt.Sprintf("attempt %d has ended and changes, from %+v to %+v", a.Number, *old, *a)
		case old != nil && old.EndTime == nil && !goesOn(old, a):
			return fmt.Sprintf("attempt %d is another one, from %+v to %+v", a.Number, *old, *a)
		case !inOrderOfTime(a.RequestTime, a.CreateTime, a.ReadyTime, a.EndTime):
			return fmt.Sprintf("the times of attempt %d are not in order: %+v", a.Number, *a)
		case a.EndTime != nil && a.ReadyTime != nil && (old == nil || old.EndTime == nil):
			ready += a.EndTime.Sub(a.ReadyTime.Time).Milliseconds()
		}
	}
	for i := range before.Attempts {
		if old := &before.Attempts[i]; attemptNumbered(after, old.Number) == nil && len(after.Attempts) < maxAttempts {
			return fmt.Sprintf("attempt %d is lost", old.Number)
		}
	}
	if after.ReadyMilliseconds != ready {
		return fmt.Sprintf("all was ready for %d ms and not %d", after.ReadyMilliseconds, ready)
	}
	return ""
}

func attemptNumbered(status *jobsetv1alpha2.JobSetStatus, number int32) *jobsetv1alpha2.Attempt {
	for i := range status.Attempts {
		if status.Attempts[i].Number == number {
			return &status.Attempts[i]
		}
	}
	return nil
}

// goesOn reports whether an attempt that runs has kept what was known about it.
func goesOn(old, a *jobsetv1alpha2.Attempt) bool {
	kept := *a
	kept.EndTime, kept.Outcome, kept.EndUser, kept.EndReason = nil, "", "", ""
	if old.CreateTime == nil {
		kept.CreateTime = nil
	}
	if old.ReadyTime == nil {
		kept.ReadyTime = nil
	}
	if old.FirstCause == nil {
		kept.FirstCause = nil
	}
	return equality.Semantic.DeepEqual(old, &kept)
}

func inOrderOfTime(times ...*metav1.MicroTime) bool {
	var last *metav1.MicroTime
	for _, t := range times {
		if t == nil {
			continue
		}
		if last != nil && t.Before(last) {
			return false
		}
		last = t
	}
	return true
}

// wrongWithAttempt is what may be wrong with the history of a set at rest.
func wrongWithAttempt(js *jobsetv1alpha2.JobSet) string {
	runs := !isSuspended(js) && !finished(&js.Status) && js.Spec.ManagedBy == nil
	if a := inAttempt(&js.Status); (a != nil) != runs {
		return fmt.Sprintf("it runs: %t, in the attempt %+v", runs, a)
	}
	return ""
}

// sameConditions compares conditions but for the generation that they were last looked at for.
func sameConditions(before, after []metav1.Condition) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		old, is := before[i], after[i]
		if old.ObservedGeneration > is.ObservedGeneration {
			return false
		}
		old.ObservedGeneration = is.ObservedGeneration
		if old != is {
			return false
		}
	}
	return true
}
