// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// inPlacePod is a pod that may restart where it is.
type inPlacePod struct {
	name     string
	job      types.UID
	restarts int32
	done     bool
	// attempt is what the pod says it has reached; empty if it says nothing.
	attempt string
}

// podOf returns a pod of the Job that says it has reached an attempt; none if that is empty.
func podOf(job *batchv1.Job, attempt string, change ...func(*inPlacePod)) inPlacePod {
	pod := inPlacePod{name: job.Name + "-pod", job: job.UID, attempt: attempt}
	for _, f := range change {
		f(&pod)
	}
	return pod
}

// inPlaceOf sums up pods by their Job, the pod that was the first to restart first.
func inPlaceOf(pods ...inPlacePod) map[types.UID]inplace.State {
	out := map[types.UID]inplace.State{}
	for i, pod := range pods {
		sum := out[pod.job]
		one := inplace.State{ContainerRestarts: pod.restarts}
		if pod.done {
			one.Succeeded = 1
		} else if n, err := strconv.Atoi(pod.attempt); err == nil {
			one = inplace.State{Pods: 1, Lowest: int32(n), Highest: int32(n), First: pod.name, Order: uint64(i + 1), ContainerRestarts: pod.restarts} //nolint:gosec // small numbers
		} else if pod.attempt != "" {
			one.Problems = []string{pod.name + " says " + pod.attempt}
		}
		sum.Add(one)
		out[pod.job] = sum
	}
	return out
}

func podSucceeded(pod *inPlacePod) { pod.done = true }

func containersRestarted(times int32) func(*inPlacePod) {
	return func(pod *inPlacePod) { pod.restarts = times }
}

// inPlaceSet has two Jobs of two pods each, and three restarts.
func inPlaceSet(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	return newSet(append(change, failurePolicy(3), func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy.RestartStrategy = jobsetv1alpha2.RestartStrategyInPlaceRestart
	}, with("w", 2, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
	}))...)
}

func TestInPlaceRestart(t *testing.T) {
	type set = func(*jobsetv1alpha2.JobSet)
	a, b := jobNamed("w", 0), jobNamed("w", 1)
	failed := jobNamed("w", 0, func(job *batchv1.Job) { job.UID = "uid-gone" })
	attempts := func(previous, current *int32) set {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Status.PreviousInPlaceRestartAttempt, js.Status.CurrentInPlaceRestartAttempt = previous, current
		}
	}
	n := ptr.To[int32]
	for name, tc := range map[string]struct {
		off  bool
		set  []set
		pods []inPlacePod
		// Wanted attempts, state and problems.
		wantPrevious, wantCurrent *int32
		wantState                 string
		wantProblems              []string
	}{
		"nothing happens before all pods are up":     {pods: []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0")}},
		"nothing happens without any pod":            {},
		"all pods start together":                    {pods: []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "0")}, wantCurrent: n(0)},
		"a pod that says nothing yet is waited for":  {pods: []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "")}},
		"a pod of an earlier attempt does not count": {pods: []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(failed, "0")}},
		"one pod that restarts makes all others restart": {
			set: []set{attempts(nil, n(0))}, pods: []inPlacePod{podOf(a, "0"), podOf(a, "1"), podOf(b, "0"), podOf(b, "0")},
			wantPrevious: n(0), wantCurrent: n(0)},
		"the attempt to leave never goes back": {
			set: []set{attempts(n(1), n(1))}, pods: []inPlacePod{podOf(a, "0"), podOf(a, "1"), podOf(b, "0")},
			wantPrevious: n(1), wantCurrent: n(1)},
		"the attempt that all have reached never goes back": {
			set: []set{attempts(n(0), n(1))}, pods: []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "0")},
			wantPrevious: n(0), wantCurrent: n(1)},
		"pods as they were before the attempt that all have reached make none restart": {
			set: []set{attempts(nil, n(3))}, pods: []inPlacePod{podOf(a, "1"), podOf(a, "1"), podOf(b, "2"), podOf(b, "2")},
			wantCurrent: n(3)},
		"a restart has ended when all have reached it": {
			set: []set{attempts(n(0), n(0))}, pods: []inPlacePod{podOf(a, "1"), podOf(a, "1"), podOf(b, "1"), podOf(b, "1")},
			wantPrevious: n(0), wantCurrent: n(1)},
		"nobody waits for a pod that has succeeded": {
			set: []set{attempts(n(0), n(0))}, pods: []inPlacePod{podOf(a, "0", podSucceeded), podOf(a, "1"), podOf(b, "1"), podOf(b, "1")},
			wantPrevious: n(0), wantCurrent: n(1)},
		"pods that have succeeded do not restart alone": {
			set: []set{attempts(nil, n(0))}, pods: []inPlacePod{podOf(a, "0", podSucceeded), podOf(a, "0", podSucceeded)}, wantCurrent: n(0)},
		"more restarts than the policy allows fail the set": {
			pods: []inPlacePod{podOf(a, "4")}, wantState: "Failed"},
		"restarts that do not count are added": {
			set: []set{restarted(1, 0)}, pods: []inPlacePod{podOf(jobNamed("w", 0, attempt("1")), "4")}, wantPrevious: n(3)},
		"a container that restarts too often fails the set": {
			pods: []inPlacePod{podOf(a, "", containersRestarted(4))}, wantState: "Failed"},
		"a container may restart as often as the policy allows": {
			pods: []inPlacePod{podOf(a, "", containersRestarted(3))}},
		"a pod that says nonsense holds all back": {
			pods:         []inPlacePod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "nonsense")},
			wantProblems: []string{"js-w-1-pod says nonsense"}},
		"Jobs that need more completions than they run pods hold all back": {
			set: []set{with("x", 1)}, pods: []inPlacePod{podOf(a, "1")},
			wantProblems: []string{`replicatedJob "x" prevents the in-place restart: its completions must be set and equal its parallelism`}},
		"without the feature pods mean nothing": {off: true, pods: []inPlacePod{podOf(a, "9", containersRestarted(9))}},
	} {
		t.Run(name, func(t *testing.T) {
			js := inPlaceSet(tc.set...)
			o := observe(js, a, b)
			if js.Status.Restarts > 0 {
				o.Jobs = []*batchv1.Job{jobNamed("w", 0, attempt("1")), jobNamed("w", 1, attempt("1"))}
			}
			o.InPlace, o.Gates.InPlaceRestart = hostplan.Of(inPlaceOf(tc.pods...)), !tc.off
			p := Decide(o)
			status := statusAfter(o, p)
			diff(t, "previous attempt", tc.wantPrevious, status.PreviousInPlaceRestartAttempt)
			diff(t, "current attempt", tc.wantCurrent, status.CurrentInPlaceRestartAttempt)
			diff(t, "state", tc.wantState, status.TerminalState)
			diff(t, "problems", tc.wantProblems, p.Problems)
			if tc.wantState != "" {
				diff(t, "reason", Event{Type: "Warning", Reason: "ReachedMaxRestarts", Note: "jobset failed due to reaching max number of restarts"}, p.Events[0])
			}
		})
	}
}

func TestFailedJobRestartsSetWithInPlaceRestart(t *testing.T) {
	o := observe(inPlaceSet(), jobNamed("w", 0, jobFailed), jobNamed("w", 1))
	o.Gates.InPlaceRestart = true
	o.InPlace = hostplan.Of(inPlaceOf(podOf(o.Jobs[0], "0"), podOf(o.Jobs[1], "0")))
	status := Decide(o).Status
	diff(t, "restarts", int32(1), status.Restarts)
	o.JobSet.Status = *status
	p := Decide(o)
	diff(t, "deletions", []string{"js-w-0", "js-w-1"}, refNames(p.DeleteJobs))
	diff(t, "current attempt, of pods that are about to go", (*int32)(nil), statusAfter(o, p).CurrentInPlaceRestartAttempt)
}

// TestFirstCauseOfRestartInPlace has a pod restart where it is whose status shows the failure before or after the others restart.
func TestFirstCauseOfRestartInPlace(t *testing.T) {
	failed := func(second int64) *jobsetv1alpha2.FailureCause {
		return &jobsetv1alpha2.FailureCause{Job: "js-w-1", Pod: "js-w-1-pod", Node: "n1", Container: "main", ExitCode: ptr.To[int32](137), Time: ptr.To(metav1.Unix(second, 0))}
	}
	now := attemptNow.Unix()
	for name, tc := range map[string]struct {
		// atFirst and later are what is known when the first pod has restarted, and when all have.
		atFirst, later *jobsetv1alpha2.FailureCause
		want           string
		wantNotes      []string
	}{
		"known at once":                        {failed(now - 1), failed(now), "js-w-1-pod", []string{"pod js-w-1-pod on node n1: container main exited with 137"}},
		"known later":                          {nil, failed(now - 1), "js-w-1-pod", []string{"pod js-w-1-pod on node n1: container main exited with 137"}},
		"that of an earlier restart is not it": {failed(1), failed(2), "", nil},
		"what ended for the restart is not it": {nil, failed(now), "", nil},
		"nor what ended for it later":          {nil, failed(now + 1), "", nil},
		"never known":                          {nil, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := jobNamed("w", 0, bothReady), jobNamed("w", 1, bothReady)
			set := inPlaceSet(createdBefore, withAttempts(begun(1, jobsetv1alpha2.TriggerStart, func(a *jobsetv1alpha2.Attempt) { a.RequestTime = at(3000) }, created(1), readySince(3540))))
			set.Status.CurrentInPlaceRestartAttempt = ptr.To[int32](0)
			o := observe(set, a, b)
			o.KeepAttempts, o.Gates.InPlaceRestart = true, true
			var notes []string
			for _, step := range []struct {
				cause *jobsetv1alpha2.FailureCause
				pods  []inPlacePod
			}{
				{tc.atFirst, []inPlacePod{podOf(b, "1"), podOf(b, "0"), podOf(a, "0"), podOf(a, "0")}},
				{tc.later, []inPlacePod{podOf(b, "1"), podOf(b, "1"), podOf(a, "1"), podOf(a, "1")}},
				{tc.later, []inPlacePod{podOf(b, "1"), podOf(b, "1"), podOf(a, "1"), podOf(a, "1")}},
			} {
				o.InPlace, o.FailedInPlace = hostplan.Of(inPlaceOf(step.pods...)), hostplan.Known[*jobsetv1alpha2.FailureCause]{}
				first := Decide(o).Asks.FirstInPlace
				diff(t, "first pod", "js-w-1 js-w-1-pod", first.Job+" "+first.Pod)
				if o.FailedInPlace = hostplan.NotObtained[*jobsetv1alpha2.FailureCause](); step.cause != nil {
					o.FailedInPlace = hostplan.Of(step.cause)
				}
				p := Decide(o)
				next := *o.JobSet
				next.Status = *statusAfter(o, p)
				o.JobSet = &next
				for _, event := range p.Events {
					if event.Reason == "FirstFailure" {
						notes = append(notes, event.Note)
					}
				}
			}
			var got string
			if cause := o.JobSet.Status.Attempts[0].FirstCause; cause != nil {
				got = cause.Pod
			}
			diff(t, "first cause", tc.want, got)
			diff(t, "events", tc.wantNotes, notes)
			diff(t, "attempts", 2, len(o.JobSet.Status.Attempts))
		})
	}
}

// TestTooManyRestartsInPlaceHaveFirstCause has a set fail because of a pod that restarts once more than it may.
func TestTooManyRestartsInPlaceHaveFirstCause(t *testing.T) {
	a, b := jobNamed("w", 0, bothReady), jobNamed("w", 1, bothReady)
	o := observe(inPlaceSet(createdBefore, withAttempts(begun(1, jobsetv1alpha2.TriggerStart, created(1)))), a, b)
	o.KeepAttempts, o.Gates.InPlaceRestart = true, true
	o.InPlace = hostplan.Of(inPlaceOf(podOf(a, "4")))
	cause := &jobsetv1alpha2.FailureCause{Job: "js-w-0", Pod: "js-w-0-pod", Container: "main", ExitCode: ptr.To[int32](1)}
	o.FailedInPlace = hostplan.Of(cause)
	p := Decide(o)
	diff(t, "state", "Failed", p.Status.TerminalState)
	diff(t, "first cause", cause, p.Status.Attempts[0].FirstCause)
	diff(t, "event", "FirstFailure", p.Events[0].Reason)
}
