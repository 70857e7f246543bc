// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// TestNoOrderOfStepsStartsJobsThatWait takes the steps that write children in many orders. Jobs that wait for their dependencies, their
// turn, a domain or their group start in none of them, and those that wait for nothing start in all.
func TestNoOrderOfStepsStartsJobsThatWait(t *testing.T) {
	suspendedJobs := []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, inGroup("js")), jobNamed("w", 1, jobIsSuspended, inGroup("js")), jobNamed("other", 0, jobIsSuspended, inGroup("js"))}
	exclusive := func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	}
	for name, tc := range map[string]struct {
		set    []func(*jobsetv1alpha2.JobSet)
		jobs   []*batchv1.Job
		groups *gang.Observed
		want   string
	}{
		"no Job waits":                  {want: "w-0, w-1, other-0"},
		"all Jobs wait for their group": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: &gang.Observed{API: gang.V1beta1}},
		"all Jobs wait for their group, to be resumed": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: &gang.Observed{API: gang.V1beta1}, jobs: suspendedJobs,
		},
		"all Jobs wait, groups are unknown": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: &gang.Observed{}},
		"a Job waits for its turn":          {set: []func(*jobsetv1alpha2.JobSet){inOrder}, want: "w-0, w-1"},
		"all Jobs wait for domains":         {set: []func(*jobsetv1alpha2.JobSet){exclusive}},
		"a Job waits for another one": {
			set: []func(*jobsetv1alpha2.JobSet){func(js *jobsetv1alpha2.JobSet) {
				dependsOn("w", jobsetv1alpha2.DependencyReady)(&js.Spec.ReplicatedJobs[1])
			}}, want: "w-0, w-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), with("other", 1)}, tc.set...)...), tc.jobs...)
			o.Gates.ExclusivePlacement, o.Grouped = true, tc.groups
			o = indexed(o)
			dice := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				s := state{Observed: o, owned: classify(o)}
				s.draft = newDraft(s)
				w := newWork(s)
				steps := slices.Clone(childSteps())
				dice.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
				for _, take := range steps {
					w.state = fold(w.state, take(w))
				}
				var started []string
				for _, job := range w.plan.CreateJobs {
					started = append(started, strings.TrimPrefix(job.Name, "js-"))
				}
				if resumed := resumedNames(w.plan); resumed != "" {
					started = append(started, resumed)
				}
				diff(t, "Jobs that start", tc.want, strings.Join(started, ", "))
			}
		})
	}
}
