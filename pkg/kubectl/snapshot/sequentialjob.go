// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Sequence is a SequentialJob with its children, as read at one time.
type Sequence struct {
	// SequentialJob is the sequence itself.
	SequentialJob *batchv1alpha1.SequentialJob
	// Steps are the steps of the spec, in order.
	Steps []Step
	// Now is when the reading began.
	Now time.Time
}

// Step is a step with its child.
type Step struct {
	helper.Step
	// Status is nil for a step that has not been started.
	Status *batchv1alpha1.SequentialJobStepStatus
	// Job or Set is the child; both are nil while there is none.
	Job *batchv1.Job
	Set *Set
	// Pods are the pods of the Job, or of the Jobs of the set.
	Pods []*corev1.Pod
}

// State is the state of the step in the words of the status.
func (s *Step) State() string {
	if s.Status == nil {
		return string(batchv1alpha1.StepPending)
	}
	return string(s.Status.State)
}

// Ended returns whether the step has succeeded or failed.
func (s *Step) Ended() bool {
	return s.Status != nil && (s.Status.State == batchv1alpha1.StepSucceeded || s.Status.State == batchv1alpha1.StepFailed)
}

// Attempts is the number of attempts to run the step, the current one included.
func (s *Step) Attempts() int {
	if s.Status == nil {
		return 0
	}
	return int(s.Status.Attempts)
}

// Outdated reports whether a child belongs to an earlier attempt of the step.
func (s *Step) Outdated(child metav1.Object) bool {
	attempt := number(child.GetLabels()[batchv1alpha1.StepAttemptKey])
	return attempt >= 0 && attempt < s.Attempts()
}

// JobState is what the Job of the step does.
func (s *Step) JobState() string { return jobState(s.Job, s.Outdated(s.Job)) }

// LoadSequence reads a sequence with its children: one list call for each kind, and two more if steps are JobSets. Pods are
// left out on request, because they are the many.
func LoadSequence(ctx context.Context, c *cli.Clients, name string, withPods bool) (*Sequence, error) {
	now := time.Now()
	var sj *batchv1alpha1.SequentialJob
	r := &sequenceReader{Clients: c, name: name, withPods: withPods}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		sj, err = c.JobSets.BatchV1alpha1().SequentialJobs(c.Namespace).Get(groupCtx, name, metav1.GetOptions{})
		return err
	})
	selector := batchv1alpha1.SequentialJobNameKey + "=" + name
	r.read(groupCtx, group, selector)
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if names := setNames(sj); len(names) > 0 {
		group, groupCtx = errgroup.WithContext(ctx)
		group.Go(func() error { return r.readSets(groupCtx, selector) })
		r.read(groupCtx, group, fmt.Sprintf("%s in (%s)", jobsetv1alpha2.JobSetNameKey, strings.Join(names, ",")))
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	return AssembleSequence(sj, r.jobs, r.sets, r.pods, now), nil
}

// setNames are the names of the children that are JobSets.
func setNames(sj *batchv1alpha1.SequentialJob) []string {
	var names []string
	for _, step := range helper.Steps(&sj.Spec) {
		if step.JobSet != nil {
			names = append(names, helper.ChildName(sj.Name, step.Index))
		}
	}
	return names
}

// sequenceReader collects what several list calls return. Two of them may return the same object.
type sequenceReader struct {
	*cli.Clients
	name     string
	withPods bool
	jobs     []batchv1.Job
	sets     []jobsetv1alpha2.JobSet
	pods     []corev1.Pod
}

func (r *sequenceReader) read(ctx context.Context, group *errgroup.Group, selector string) {
	options := metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"}
	group.Go(func() error {
		list, err := r.Kube.BatchV1().Jobs(r.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the jobs of sequentialjob %s: %w", r.name, err)
		}
		r.jobs = append(r.jobs, list.Items...)
		return nil
	})
	if !r.withPods {
		return
	}
	group.Go(func() error {
		list, err := r.Kube.CoreV1().Pods(r.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the pods of sequentialjob %s: %w", r.name, err)
		}
		r.pods = append(r.pods, list.Items...)
		return nil
	})
}

func (r *sequenceReader) readSets(ctx context.Context, selector string) error {
	list, err := r.JobSets.JobsetV1alpha2().JobSets(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("listing the jobsets of sequentialjob %s: %w", r.name, err)
	}
	r.sets = list.Items
	return nil
}

// AssembleSequence returns the sequence with the objects that belong to it.
func AssembleSequence(sj *batchv1alpha1.SequentialJob, jobs []batchv1.Job, sets []jobsetv1alpha2.JobSet, pods []corev1.Pod,
	now time.Time) *Sequence {
	s := &Sequence{SequentialJob: sj, Now: now}
	jobs, pods = unique(jobs), unique(pods)
	for _, step := range helper.Steps(&sj.Spec) {
		out := Step{Step: step}
		if step.Index < len(sj.Status.Steps) {
			out.Status = &sj.Status.Steps[step.Index]
		}
		name := helper.ChildName(sj.Name, step.Index)
		for i := range jobs {
			if jobs[i].Name == name && metav1.IsControlledBy(&jobs[i], sj) {
				out.Job = &jobs[i]
				out.Pods = podsControlledBy(out.Job, pods)
			}
		}
		for i := range sets {
			if sets[i].Name == name && metav1.IsControlledBy(&sets[i], sj) {
				out.Set = Assemble(&sets[i], jobs, pods, now)
				out.Pods = out.Set.Pods
			}
		}
		s.Steps = append(s.Steps, out)
	}
	return s
}

// podsControlledBy returns the pods of a Job by completion index and name.
func podsControlledBy(job *batchv1.Job, pods []corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], job) {
			out = append(out, &pods[i])
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(PodIndex(a), PodIndex(b)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// unique removes objects that two list calls returned.
func unique[T any, P interface {
	*T
	metav1.Object
}](objects []T) []T {
	seen := map[string]bool{}
	return slices.DeleteFunc(objects, func(o T) bool {
		name := P(&o).GetName()
		known := seen[name]
		seen[name] = true
		return known
	})
}
