// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Sequence is what one SequentialJob would create, or change if it exists.
type Sequence struct {
	Object
	// Steps are the steps of a new sequence, in the order in which their children are created.
	Steps []Step `json:"steps,omitempty"`
}

// Step is what a step would create.
type Step struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Kind and ChildName are the kind and the name of the child.
	Kind      string `json:"kind"`
	ChildName string `json:"childName"`
	// NameTaken reports that another Job has the name. The sequence would wait until it is gone.
	NameTaken bool `json:"nameTaken,omitempty"`
	// Queue is the one that decides when the child runs.
	Queue string `json:"queue,omitempty"`
	// Pods is the number of pods that run at a time, and Job and Pod are the verdicts of the cluster on the Job and its first pod.
	Pods int      `json:"pods"`
	Job  *Verdict `json:"job,omitempty"`
	Pod  *Verdict `json:"pod,omitempty"`
	// JobSet is the preview of a child that is one.
	JobSet *Set `json:"jobSet,omitempty"`
	// Quota are the limits that the step counts towards while it is the only one that runs.
	Quota []QuotaLine `json:"quota,omitempty"`
}

// sequencePreviewer previews one sequence.
type sequencePreviewer struct {
	*Session
	out Sequence
	sj  *batchv1alpha1.SequentialJob
}

// SequentialJob is the Previewer of SequentialJobs.
func SequentialJob(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error) {
	p := &sequencePreviewer{Session: s, out: Sequence{Object: objectOf(cli.SequentialJob, object)}}
	return &p.out, previewing[batchv1alpha1.SequentialJob]{
		Session: s, kind: cli.SequentialJob, out: &p.out.Object, describeNew: p.describeNew, describeUpdate: p.describeUpdate,
	}.run(ctx, object)
}

// describeNew describes a new sequence step by step: only one of them runs at a time.
func (p *sequencePreviewer) describeNew(ctx context.Context, sj *batchv1alpha1.SequentialJob) error {
	p.sj = sj
	p.out.Notes = append(p.out.Notes, sequenceNotes(p.sj)...)
	names, err := p.lookAround(ctx, &p.out.Object)
	if err != nil {
		return err
	}
	for _, step := range helper.Steps(&p.sj.Spec) {
		out, err := p.askStep(ctx, step, names.Has(helper.ChildName(p.sj.Name, step.Index)))
		if err != nil {
			return fmt.Errorf("step %s: %w", step.Name, err)
		}
		p.out.Steps = append(p.out.Steps, out)
	}
	return nil
}

// sequenceNotes say what the cluster does not say about the sequence.
func sequenceNotes(sj *batchv1alpha1.SequentialJob) []string {
	if helper.ManagedElsewhere(sj) {
		return []string{fmt.Sprintf("the controller %q runs the sequence, which spec.managedBy names: what it creates is not known here",
			*sj.Spec.ManagedBy)}
	}
	var notes []string
	if helper.Suspended(sj) {
		notes = append(notes, "the sequence is suspended: no step starts before it is resumed")
	}
	if queue := sj.Labels[helper.QueueKey]; queue != "" {
		notes = append(notes, fmt.Sprintf("the queue %s decides when each step runs: children are created suspended", queue))
	}
	return notes
}

// alone is a session for one step. What it adds is not counted for the others, which do not run at the same time.
func (s *Session) alone() *Session {
	out := *s
	out.quotas = map[string][]corev1.ResourceQuota{}
	for namespace, quotas := range s.quotas {
		for i := range quotas {
			out.quotas[namespace] = append(out.quotas[namespace], *quotas[i].DeepCopy())
		}
	}
	return &out
}

// Refused implements View.
func (s *Sequence) Refused() bool {
	return s.Verdict.Answer == Refused || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.refused() })
}

func (s *Step) refused() bool {
	short := slices.ContainsFunc(s.Quota, func(line QuotaLine) bool { return line.Short != "" })
	return s.NameTaken || s.Job.refused() || s.Pod.refused() || s.JobSet != nil && s.JobSet.Refused() || short
}

// unknown reports whether not everything could be checked.
func (s *Sequence) unknown() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool {
		for _, v := range []*Verdict{step.Job, step.Pod} {
			if v != nil && v.Answer == Unknown {
				return true
			}
		}
		return step.JobSet != nil && step.JobSet.unknown()
	})
}
