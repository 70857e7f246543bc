// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
)

// at returns a status with steps in the states. The last one is current; its index is next if it has succeeded.
func at(states ...batch.StepState) batch.SequentialJobStatus {
	var s batch.SequentialJobStatus
	for i, state := range states {
		s.Steps = append(s.Steps, batch.SequentialJobStepStatus{Name: string(rune('a' + i)), Kind: batch.StepKindJob, State: state, Attempts: 1})
		if s.Progress.CurrentIndex == nil || state != batch.StepPending {
			s.Progress.CurrentIndex = ptr.To(int32(i))
		}
		if state == batch.StepSucceeded {
			s.Progress.CompletedIndices = append(s.Progress.CompletedIndices, int32(i))
			s.Progress.CurrentIndex = ptr.To(int32(i + 1))
		}
	}
	return s
}

func complete(s batch.SequentialJobStatus) batch.SequentialJobStatus {
	s.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
	return s
}

// The matrix of what changes, of how far the sequence is, and of the strategy. Steps are a, b and c.
func TestChangesOfSteps(t *testing.T) {
	const (
		succeeded, running, failed, pending = batch.StepSucceeded, batch.StepRunning, batch.StepFailed, batch.StepPending
		strategyForbid                      = "cannot be changed after a step has started while updateStrategy.type is Forbid; set it to Continue or Restart first"
		done                                = "cannot be changed, because the step has completed; create another SequentialJob"
	)
	image := func(i int) func(*batch.SequentialJobSpec) {
		return func(s *batch.SequentialJobSpec) { s.Containers[i].Image = "new" }
	}
	selector := func(s *batch.SequentialJobSpec) { s.Template.Spec.NodeSelector["a"] = "new" }
	limit := func(s *batch.SequentialJobSpec) { s.BackoffLimit = ptr.To[int32](3) }
	removeFirst := func(s *batch.SequentialJobSpec) { s.Containers = s.Containers[1:] }
	removeLast := func(s *batch.SequentialJobSpec) { s.Containers = s.Containers[:2] }
	removeAllButFirst := func(s *batch.SequentialJobSpec) { s.Containers = s.Containers[:1] }
	add := func(s *batch.SequentialJobSpec) {
		s.Containers = append(s.Containers, *s.Containers[0].DeepCopy())
		s.Containers[3].Name = "d"
	}
	swap := func(i, j int) func(*batch.SequentialJobSpec) {
		return func(s *batch.SequentialJobSpec) { s.Containers[i], s.Containers[j] = s.Containers[j], s.Containers[i] }
	}
	become := func(strategy batch.SequentialJobUpdateStrategyType, change func(*batch.SequentialJobSpec)) func(*batch.SequentialJobSpec) {
		return func(s *batch.SequentialJobSpec) { s.UpdateStrategy.Type = strategy; change(s) }
	}
	cases := map[string]struct {
		status batch.SequentialJobStatus
		change func(*batch.SequentialJobSpec)
		// want is the error with Continue and Restart, wantForbid with Forbid.
		want, wantForbid string
	}{
		"before the start, the first step changes": {change: image(0)},
		"before the start, the first step goes":    {change: removeFirst},
		"while the first step runs, it changes":    {status: at(running), change: image(0), wantForbid: `spec.containers[0].image: Invalid value: "new": was "busybox"; ` + strategyForbid},
		"while the first step runs, a later one changes": {
			status: at(running), change: image(2), wantForbid: `spec.containers[2].image: Invalid value: "new": was "busybox"; ` + strategyForbid,
		},
		"while the first step runs, the template changes": {
			status: at(running), change: selector, wantForbid: `spec.template.spec.nodeSelector[a]: Invalid value: "new": was "b"; ` + strategyForbid,
		},
		"while the first step runs, the retries change": {
			status: at(running), change: limit, wantForbid: `spec.backoffLimit: Invalid value: 3: was not set; ` + strategyForbid,
		},
		"while the first step runs, a step is added": {
			status: at(running), change: add, wantForbid: "spec.containers: Invalid value: had 3 items, now 4; " + strategyForbid,
		},
		"while the first step runs, later ones are swapped": {
			status: at(running), change: swap(1, 2), wantForbid: `spec.containers[1].name: Invalid value: "c": was "b"; ` + strategyForbid,
		},
		"while the first step runs, it goes": {
			status: at(running), change: removeFirst,
			want: `spec.containers[0].name: Invalid value: "b": must be "a": a step that has started cannot be moved, renamed or removed`,
		},
		"the first step has completed and changes": {
			status: at(succeeded, running), change: image(0), want: `spec.containers[0].image: Invalid value: "new": was "busybox"; ` + done,
		},
		"the first step has completed and moves": {
			status: at(succeeded), change: swap(0, 1), want: `spec.containers[0].name: Invalid value: "b": must be "a": a step that has completed cannot be moved, renamed or removed`,
		},
		"the second step runs and goes with the third": {
			status: at(succeeded, running), change: removeAllButFirst,
			want: `spec.containers: Invalid value: must have the step "b" at index 1: a step that has started cannot be moved, renamed or removed`,
		},
		"the template changes after a step has completed": {status: at(succeeded, running), change: selector, wantForbid: `spec.template.spec.nodeSelector[a]: Invalid value: "new": was "b"; ` + strategyForbid},
		"a failed step changes":                           {status: at(succeeded, failed), change: image(1), wantForbid: `spec.containers[1].image: Invalid value: "new": was "busybox"; ` + strategyForbid},
		"a step that runs again after a retry changes":    {status: at(running, pending), change: image(1), wantForbid: `spec.containers[1].image: Invalid value: "new": was "busybox"; ` + strategyForbid},
		"between two steps, the next one goes":            {status: at(succeeded), change: removeLast, wantForbid: "spec.containers: Invalid value: had 3 items, now 2; " + strategyForbid},
		"all steps have completed, and one is added": {
			status: complete(at(succeeded, succeeded, succeeded)), change: add,
			want: "spec.containers: Invalid value: must have 3 steps, because all of them have completed; create another SequentialJob for more",
		},
		"the strategy becomes Forbid with the change": {
			status: at(running), change: become(batch.UpdateForbid, image(2)), want: `spec.containers[2].image: Invalid value: "new": was "busybox"; ` + strategyForbid,
		},
		"the strategy changes alone": {status: at(running), change: become(batch.UpdateRestart, func(*batch.SequentialJobSpec) {})},
		"what is not about steps changes": {status: at(succeeded, running), change: func(s *batch.SequentialJobSpec) {
			s.Suspend, s.TTLSecondsAfterFinished, s.ActiveDeadlineSeconds = ptr.To(true), ptr.To[int32](1), ptr.To[int64](1)
		}},
	}
	const spec = `{containers: [{name: a, image: busybox}, {name: b, image: busybox}, {name: c, image: busybox}],
  template: {spec: {nodeSelector: {a: b}}}, updateStrategy: {type: %s}}`
	for name, tc := range cases {
		for _, strategy := range []string{"Continue", "Restart", "Forbid"} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				prev := etl(t, strings.Replace(spec, "%s", strategy, 1))
				prev.Status = tc.status
				next := prev.DeepCopy()
				tc.change(&next.Spec)
				got := messages(validation.ValidateSequentialJobUpdate(next, prev, options))
				want := tc.want
				if strategy == "Forbid" && tc.wantForbid != "" {
					want = tc.wantForbid
				}
				switch {
				case strategy == "Forbid" && tc.want != "":
					if len(got) == 0 { // whatever is refused with the others is refused with Forbid, too
						t.Error("it is allowed")
					}
				case want == "" && len(got) > 0, want != "" && (len(got) == 0 || got[0] != want):
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

func TestStepsKeepTheKindOfTheirChildren(t *testing.T) {
	const job = "job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}}"
	const jobSet = "jobSet: {spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: main, image: a}]}}}}}]}}"
	step := func(text string) *batch.SequentialJob { return etl(t, "{steps: [{name: a, "+text+"}]}") }
	for name, tc := range map[string]struct {
		next, prev string
		state      batch.StepState
		want       []string
	}{
		"a container becomes a Job":    {next: job, prev: "container: {image: a}", state: batch.StepRunning},
		"a Job becomes a JobSet":       {next: jobSet, prev: job, state: batch.StepRunning, want: []string{"spec.steps[0]: Forbidden: must describe a Job, because the step has started"}},
		"a JobSet becomes a container": {next: "container: {image: a}", prev: jobSet, state: batch.StepFailed, want: []string{"spec.steps[0]: Forbidden: must describe a JobSet, because the step has started"}},
		"a completed Job becomes a container": {
			next: "container: {image: a}", prev: job, state: batch.StepSucceeded,
			want: []string{"spec.steps[0]: Forbidden: cannot be changed, because the step has completed; create another SequentialJob"},
		},
		"a completed JobSet changes": {
			next: strings.Replace(jobSet, "replicatedJobs", "ttlSecondsAfterFinished: 5, replicatedJobs", 1), prev: jobSet, state: batch.StepSucceeded,
			want: []string{"spec.steps[0].jobSet.spec.ttlSecondsAfterFinished: Invalid value: 5: was not set; cannot be changed, because the step has completed; create another SequentialJob"},
		},
		"a completed Job changes": {
			next: strings.Replace(job, "image: a", "image: b", 1), prev: job, state: batch.StepSucceeded,
			want: []string{`spec.steps[0].job.spec.template.spec.containers[0].image: Invalid value: "b": was "a"; cannot be changed, because the step has completed; create another SequentialJob`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			prev, next := step(tc.prev), step(tc.next)
			prev.Status = at(tc.state)
			next.Status = prev.Status
			if diff := cmp.Diff(tc.want, messages(validation.ValidateSequentialJobUpdate(next, prev, options))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// A stored object may have errors of rules that came later. It stays updatable, as long as nothing gets worse.
func TestSequencesOfOtherRulesStayUpdatable(t *testing.T) {
	prev := etl(t, "{containers: [{name: A}, {name: b, image: b}, {name: b}], backoffLimit: -1}")
	prev.Name = strings.Repeat("a", 70)
	next := prev.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	if got := messages(validation.ValidateSequentialJobUpdate(next, prev, options)); got != nil {
		t.Errorf("suspending it: %q", got)
	}
	next.Spec.Containers[1].Image = ""
	if diff := cmp.Diff([]string{"spec.containers[2].image: Required value: must be set"}, messages(validation.ValidateSequentialJobUpdate(next, prev, options))); diff != "" {
		t.Errorf("one more error (-want +got):\n%s", diff)
	}
	next.Spec.ManagedBy = ptr.To("example.com/c")
	if got := messages(validation.ValidateSequentialJobUpdate(next, prev, options)); len(got) == 0 || !strings.Contains(got[0], "field is immutable") {
		t.Errorf("another controller: %q", got)
	}
}
