// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	informers "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// SequentialJob is the Loader of SequentialJobs.
func SequentialJob(ctx context.Context, c *cli.Clients, name string) (*Source, error) {
	return snapshot.Read(ctx, c, name, snapshot.LoadSequence, sourceOfSequence)
}

// sourceOfSequence returns a sequence as a source. It has the pods of all steps, in order.
func sourceOfSequence(s *snapshot.Sequence) *Source {
	sj := s.SequentialJob
	out := &Source{
		Object: sj, kind: cli.SequentialJob, noun: "sequence", ref: cli.SequentialJob.Names[2] + "/" + sj.Name, state: string(helper.Phase(sj)),
		prepare:  func(sel *selection) (records, error) { return chooseStep(s, sel) },
		selector: batchv1alpha1.SequentialJobNameKey + "=" + sj.Name + "," + batchv1alpha1.SequentialJobUIDKey + "=" + string(sj.UID),
		informer: informers.NewFilteredSequentialJobInformer,
		over:     func(obj any) bool { return sequenceOver(obj.(*batchv1alpha1.SequentialJob), sj.UID) },
	}
	for i := range s.Steps {
		out.pods = append(out.pods, s.Steps[i].Pods...)
	}
	return out
}

// chooseStep completes the selection with the step: the one that the user names by name or index, or else the current one, or the
// last if all have completed. It returns the attempts of that step.
func chooseStep(s *snapshot.Sequence, sel *selection) (records, error) {
	if sel.allSteps {
		return records{absent: errors.New("needs one step; choose it with --step")}, sel.validateJob()
	}
	at := min(helper.CurrentIndex(&s.SequentialJob.Status), len(s.Steps)-1)
	if sel.step != "" {
		if at = stepAt(s.Steps, sel.step); at < 0 {
			return records{}, fmt.Errorf("--step: must be one of %s, or an index from 0 to %d, not %q", names(s.Steps), len(s.Steps)-1, sel.step)
		}
	}
	step := &s.Steps[at]
	sel.step, sel.from = step.Name, at
	if step.Set != nil {
		return stepHistory(step), sel.validateParts(step.Set.JobSet)
	}
	return stepHistory(step), sel.validateJob()
}

// stepAt returns the index of the step with the name, or else with the index; -1 if there is none.
func stepAt(steps []snapshot.Step, wanted string) int {
	if at := slices.IndexFunc(steps, func(s snapshot.Step) bool { return s.Name == wanted }); at >= 0 {
		return at
	}
	if at, err := strconv.Atoi(wanted); err == nil && at >= 0 && at < len(steps) {
		return at
	}
	return -1
}

func names(steps []snapshot.Step) string {
	var names []string
	for i := range steps {
		names = append(names, steps[i].Name)
	}
	return strings.Join(names, ", ")
}

// stepHistory are the attempts of a step. Only the last one has a cause on record, and pods of earlier ones are gone, as a rule.
func stepHistory(s *snapshot.Step) records {
	h := records{absent: fmt.Errorf("step %s has not run yet", s.Name)}
	for n := 1; n <= s.Attempts(); n++ {
		r := record{number: n, title: fmt.Sprintf("attempt %d of step %s", n, s.Name), pods: func(pods []*corev1.Pod) []*corev1.Pod {
			return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
				return pod.Labels[batchv1alpha1.StepNameKey] != s.Name || pod.Labels[batchv1alpha1.StepAttemptKey] != strconv.Itoa(n)
			})
		}}
		if n == s.Attempts() {
			r.cause = s.Status.FirstCause
		}
		h.attempts = append(h.attempts, r)
	}
	return h
}

// sequenceOver reports whether the sequence will have no new pods: it finished, or another one has taken its name.
func sequenceOver(sj *batchv1alpha1.SequentialJob, uid types.UID) bool {
	return sj.UID != uid || helper.Finished(sj) != nil
}
