// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Set is a JobSet with its Jobs and pods, as read at one time.
type Set struct {
	// JobSet is the set itself.
	JobSet *jobsetv1alpha2.JobSet
	// Jobs are the jobs that the set owns, by replicatedJob in the order of the spec and then by index.
	Jobs []*batchv1.Job
	// Pods are the pods of the Jobs, in the order of the Jobs and then by completion index and name.
	Pods []*corev1.Pod
	// Now is when the reading began.
	Now time.Time
}

// Load reads the set. Pods are left out on request, because they are the many.
func Load(ctx context.Context, c *cli.Clients, name string, withPods bool) (*Set, error) {
	s := &Set{Now: time.Now()}
	var jobs *batchv1.JobList
	pods := &corev1.PodList{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.JobSet, err = c.JobSets.JobsetV1alpha2().JobSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	group.Go(func() (err error) {
		if jobs, err = c.Kube.BatchV1().Jobs(c.Namespace).List(ctx, ofSet(name)); err != nil {
			err = fmt.Errorf("listing the jobs of jobset %s: %w", name, err)
		}
		return err
	})
	if withPods {
		group.Go(func() (err error) {
			if pods, err = c.Kube.CoreV1().Pods(c.Namespace).List(ctx, ofSet(name)); err != nil {
				err = fmt.Errorf("listing the pods of jobset %s: %w", name, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s.keep(jobs.Items, pods.Items)
	return s, nil
}

// ofSet lists what carries the name of the set. The answer may come from the cache of the API server, which is quick and
// at most moments old.
func ofSet(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=" + name, ResourceVersion: "0"}
}

// keep takes the children of this very set, and sorts them. Others of the same name may be there for a while after a set
// was deleted and recreated.
func (s *Set) keep(jobs []batchv1.Job, pods []corev1.Pod) {
	rank := map[string]int{}
	for i := range s.JobSet.Spec.ReplicatedJobs {
		rank[s.JobSet.Spec.ReplicatedJobs[i].Name] = i
	}
	place := map[string]int{}
	for i := range jobs {
		if owner := metav1.GetControllerOfNoCopy(&jobs[i]); owner != nil && owner.UID == s.JobSet.UID {
			s.Jobs = append(s.Jobs, &jobs[i])
		}
	}
	slices.SortFunc(s.Jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(cmp.Compare(rank[ReplicatedJob(a)], rank[ReplicatedJob(b)]), cmp.Compare(JobIndex(a), JobIndex(b)),
			cmp.Compare(a.Name, b.Name))
	})
	for i, job := range s.Jobs {
		place[string(job.UID)] = i
	}
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		if owner == nil {
			continue
		}
		if _, found := place[string(owner.UID)]; found {
			s.Pods = append(s.Pods, &pods[i])
		}
	}
	at := func(pod *corev1.Pod) int { return place[string(metav1.GetControllerOfNoCopy(pod).UID)] }
	slices.SortFunc(s.Pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(PodIndex(a), PodIndex(b)), cmp.Compare(a.Name, b.Name))
	})
}

// ReplicatedJob returns the name of the replicatedJob that a Job or pod belongs to.
func ReplicatedJob(child metav1.Object) string {
	return child.GetLabels()[jobsetv1alpha2.ReplicatedJobNameKey]
}

// JobIndex returns the index of a Job, or of the Job of a pod, in its replicatedJob; -1 when it carries none.
func JobIndex(child metav1.Object) int { return number(child.GetLabels()[jobsetv1alpha2.JobIndexKey]) }

// PodIndex returns the completion index of a pod; -1 for one of a Job that is not Indexed.
func PodIndex(pod *corev1.Pod) int {
	return number(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// Assemble returns the set with those of the Jobs and pods that belong to it, in the order that Load gives them. It is for
// readers that can do with less than everything.
func Assemble(js *jobsetv1alpha2.JobSet, jobs []batchv1.Job, pods []corev1.Pod, now time.Time) *Set {
	s := &Set{JobSet: js, Now: now}
	s.keep(jobs, pods)
	return s
}
