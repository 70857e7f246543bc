// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// podOf returns a pod of the Job that says it has reached an attempt; none if that is empty.
func podOf(job *batchv1.Job, attempt string, change ...func(*Pod)) Pod {
	pod := Pod{Name: job.Name + "-pod", Job: job.UID}
	if attempt != "" {
		pod.InPlaceAttempt = &attempt
	}
	for _, f := range change {
		f(&pod)
	}
	return pod
}

func containersRestarted(times int32) func(*Pod) {
	return func(pod *Pod) { pod.ContainerRestarts = times }
}

func podFailed(pod *Pod) { pod.Failed = true }

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
		pods []Pod
		// Wanted attempts, state and problems.
		wantPrevious, wantCurrent *int32
		wantState                 string
		wantProblems              []string
	}{
		"nothing happens before all pods are up":     {pods: []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0")}},
		"nothing happens without any pod":            {},
		"all pods start together":                    {pods: []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "0")}, wantCurrent: n(0)},
		"a pod that says nothing yet is waited for":  {pods: []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "")}},
		"a pod that has failed does not count":       {pods: []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "0", podFailed)}},
		"a pod of an earlier attempt does not count": {pods: []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(failed, "0")}},
		"one pod that restarts makes all others restart": {
			set: []set{attempts(nil, n(0))}, pods: []Pod{podOf(a, "0"), podOf(a, "1"), podOf(b, "0"), podOf(b, "0")},
			wantPrevious: n(0), wantCurrent: n(0)},
		"the attempt to leave never goes back": {
			set: []set{attempts(n(1), n(1))}, pods: []Pod{podOf(a, "0"), podOf(a, "1"), podOf(b, "0")},
			wantPrevious: n(1), wantCurrent: n(1)},
		"a restart has ended when all have reached it": {
			set: []set{attempts(n(0), n(0))}, pods: []Pod{podOf(a, "1"), podOf(a, "1"), podOf(b, "1"), podOf(b, "1")},
			wantPrevious: n(0), wantCurrent: n(1)},
		"more restarts than the policy allows fail the set": {
			pods: []Pod{podOf(a, "4")}, wantState: "Failed"},
		"restarts that do not count are added": {
			set: []set{restarted(1, 0)}, pods: []Pod{podOf(jobNamed("w", 0, attempt("1")), "4")}, wantPrevious: n(3)},
		"a container that restarts too often fails the set": {
			pods: []Pod{podOf(a, "", containersRestarted(4))}, wantState: "Failed"},
		"a container may restart as often as the policy allows": {
			pods: []Pod{podOf(a, "", containersRestarted(3))}},
		"a pod that says nonsense holds all back": {
			pods:         []Pod{podOf(a, "0"), podOf(a, "0"), podOf(b, "0"), podOf(b, "-1")},
			wantProblems: []string{`pod "js-w-1-pod" prevents the in-place restart: annotation jobset.sigs.k8s.io/in-place-restart-attempt must be a number of 0 or more, not "-1"`}},
		"Jobs that need more completions than they run pods hold all back": {
			set: []set{with("x", 1)}, pods: []Pod{podOf(a, "1")},
			wantProblems: []string{`replicatedJob "x" prevents the in-place restart: its completions must be set and equal its parallelism`}},
		"without the feature pods mean nothing": {off: true, pods: []Pod{podOf(a, "9", containersRestarted(9))}},
	} {
		t.Run(name, func(t *testing.T) {
			js := inPlaceSet(tc.set...)
			o := observe(js, a, b)
			if js.Status.Restarts > 0 {
				o.Jobs = []*batchv1.Job{jobNamed("w", 0, attempt("1")), jobNamed("w", 1, attempt("1"))}
			}
			o.Pods, o.Gates.InPlaceRestart = tc.pods, !tc.off
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
	o.Pods = []Pod{podOf(o.Jobs[0], "0"), podOf(o.Jobs[1], "0")}
	status := Decide(o).Status
	diff(t, "restarts", int32(1), status.Restarts)
	o.JobSet.Status = *status
	p := Decide(o)
	diff(t, "deletions", []string{"js-w-0", "js-w-1"}, refNames(p.DeleteJobs))
	diff(t, "current attempt, of pods that are about to go", (*int32)(nil), statusAfter(o, p).CurrentInPlaceRestartAttempt)
}
