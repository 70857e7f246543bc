// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// sequences compares sequences with Jobs that a client runs one after another, and a step that is a set with that set alone.
func sequences(ctx context.Context, r *runner) error {
	for _, part := range []struct {
		name string
		work func(*space, context.Context) error
	}{
		{"steps by a client", (*space).runChains},
		{"steps by a sequence", (*space).runSequences},
		{"a set alone", (*space).runSetAlone},
		{"a set as a step", (*space).runSetAsStep},
	} {
		if err := r.each(ctx, watchedSequences, func(ctx context.Context, s *space) error {
			phase, err := r.measure(ctx, part.name, func(ctx context.Context) error { return part.work(s, ctx) })
			if err == nil {
				s.addSequenceWrites(phase)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return r.inSpace(ctx, watchedSequences, true, func(ctx context.Context, s *space) error { return s.restSequences(ctx) })
}

// runChains does what sequences do, as a client that creates a Job whenever the one before has completed.
func (s *space) runChains(ctx context.Context) error {
	n, steps := s.Sizes.Sequences, s.Sizes.Steps
	next := make(chan string, n*steps) // room for all, so that no event waits
	seen := map[string]bool{}          // used by the one goroutine that delivers events
	s.jobs.onShown(func(job *batchv1.Job) {
		if isComplete(job) && !seen[job.Name] {
			seen[job.Name] = true
			next <- job.Name
		}
	})
	defer s.jobs.onShown(nil)
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	failures := make(chan error, n*steps)
	for range parallel {
		go func() {
			for {
				select {
				case name := <-next:
					failures <- s.follow(ctx, name, steps)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	err := all(ctx, n, s.Sizes.Clients, func(i int) error { return s.createJob(ctx, stepName(i, 0), succeeding) })
	for range n * steps {
		if err != nil {
			return err
		}
		select {
		case err = <-failures:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// follow creates the Job after the one of the name, unless that was the last of its chain.
func (s *space) follow(ctx context.Context, name string, steps int) error {
	parts := strings.Split(name, "-")
	chain, err := strconv.Atoi(parts[1])
	if err != nil {
		return err
	}
	step, err := strconv.Atoi(parts[2])
	if err != nil || step+1 == steps {
		return err
	}
	return s.createJob(ctx, stepName(chain, step+1), succeeding)
}

func stepName(chain, step int) string { return fmt.Sprintf("chain-%d-%d", chain, step) }

func (s *space) runSequences(ctx context.Context) error {
	err := all(ctx, s.Sizes.Sequences, s.Sizes.Clients, func(i int) error {
		return s.createSequence(ctx, s.sequence(fmt.Sprintf("sequence-%d", i), false))
	})
	if err != nil {
		return err
	}
	return s.sequences.until(ctx, "all sequences are completed", s.Sizes.Sequences, isCompleteSequence)
}

func (s *space) runSetAlone(ctx context.Context) error {
	if err := s.createSet(ctx, s.set(setName, s.Sizes.StepJobs, succeeding)); err != nil {
		return err
	}
	return s.sets.until(ctx, "the set is completed", 1, has(jobsetv1alpha2.JobSetCompleted))
}

func (s *space) runSetAsStep(ctx context.Context) error {
	sj := s.sequence("experiment", false)
	sj.Spec.Containers = nil
	sj.Spec.Steps = []batchv1alpha1.SequentialJobStep{
		{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: s.set(setName, s.Sizes.StepJobs, succeeding).Spec}},
	}
	if err := s.createSequence(ctx, sj); err != nil {
		return err
	}
	return s.sequences.until(ctx, "the sequence is completed", 1, isCompleteSequence)
}

// restSequences is done when all sequences say that they are suspended.
func (s *space) restSequences(ctx context.Context) error {
	before, err := s.Cluster.Memory()
	if err != nil {
		return err
	}
	phase, err := s.measure(ctx, "at rest", func(ctx context.Context) error {
		err := all(ctx, s.Sizes.RestSequences, writers, func(i int) error {
			return s.createSequence(ctx, s.sequence(fmt.Sprintf("rest-%d", i), true))
		})
		if err != nil {
			return err
		}
		return s.sequences.until(ctx, "all sequences are suspended", s.Sizes.RestSequences, func(sj *batchv1alpha1.SequentialJob) bool {
			return meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionSuspended)
		})
	})
	if err != nil {
		return err
	}
	return s.addMemory(ctx, before, phase, "sequence", s.Sizes.RestSequences)
}

// sequence is a SequentialJob of containers whose Jobs have the same spec as bare ones.
func (s *space) sequence(name string, suspend bool) *batchv1alpha1.SequentialJob {
	template := jobSpec(succeeding).Template
	container := template.Spec.Containers[0]
	template.Spec.Containers = nil
	sj := &batchv1alpha1.SequentialJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name},
		Spec:       batchv1alpha1.SequentialJobSpec{Template: &template, BackoffLimit: ptr.To[int32](0), Suspend: ptr.To(suspend)},
	}
	for i := range s.Sizes.Steps {
		step := *container.DeepCopy()
		step.Name = fmt.Sprintf("step-%d", i)
		sj.Spec.Containers = append(sj.Spec.Containers, step)
	}
	return sj
}

func (s *space) createSequence(ctx context.Context, sj *batchv1alpha1.SequentialJob) error {
	_, err := s.Cluster.JobSets.BatchV1alpha1().SequentialJobs(s.name).Create(ctx, sj, metav1.CreateOptions{})
	return err
}

func isCompleteSequence(sj *batchv1alpha1.SequentialJob) bool {
	return meta.IsStatusConditionTrue(sj.Status.Conditions, batchv1alpha1.ConditionComplete)
}

// addSequenceWrites adds how often each sequence was written, creation included, for each of its steps.
func (s *space) addSequenceWrites(phase *report.Phase) {
	writes := 0.0
	for _, call := range writesOf("sequentialjobs") {
		writes += phase.Last("calls/jobset-apiserver/" + call)
	}
	phase.Add("writes to each sequence", report.UnitCount, writes/float64(s.Sizes.Sequences))
}
