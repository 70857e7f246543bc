// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// maxRefusals is how many more Jobs than were created may be refused in one pass, each for a reason of its own, before the
// rest is left to the next one. A webhook that denies all Jobs of a large set gets no more requests than that.
const maxRefusals = 100

// creations are the creations of Jobs in one pass.
type creations struct {
	*applier
	jobs []*batchv1.Job

	mu sync.Mutex
	// asked is the number of Jobs up to the last one that was asked for.
	asked int
	// created and refused are numbers of Jobs; others have names that are taken.
	created, taken, refused int
	// templates are the replicatedJobs whose template was refused.
	templates sets.Set[string]
	// over tells that no other Job is created in this pass, and quiet that nobody needs to know why.
	over, quiet bool
}

// createJobs creates Jobs. One that is refused keeps no other from being created, unless the others are sure to be refused
// too. What was not created has its turn in the next pass, and what was refused comes last then. So does, if the plan was full,
// all that it held: names that are taken must not fill the next one, too.
func (a *applier) createJobs(ctx context.Context, jobs []*batchv1.Job, full bool) error {
	c := &creations{applier: a, jobs: jobs, templates: sets.New[string]()}
	err := a.slowStart.Do(ctx, a.key, len(jobs), c.create)
	switch {
	case c.asked > 0 && (err != nil || full):
		last := jobs[c.asked-1]
		a.turns.note(a.key, plan.PlaceAfter(a.js, last, c.templates.Has(replicatedJobOf(last))))
	case err == nil:
		a.turns.forget(a.key)
	}
	if c.created > 0 {
		klog.FromContext(ctx).V(2).Info("Created Jobs", "jobs", c.created)
	}
	if err == nil || c.quiet {
		return nil
	}
	if missing := len(jobs) - c.created - c.taken; missing > 1 {
		err = fmt.Errorf("%d jobs are not created: %w", missing, err)
	}
	a.reportFailure(a.js, jobCreationFailed(err))
	return err
}

func (c *creations) create(ctx context.Context, i int) error {
	if !c.begin(i) {
		return controller.ErrSkipped
	}
	created, err := c.createJob(ctx, c.jobs[i])
	c.end(i, created, err)
	return err
}

// begin returns whether to ask for a Job.
func (c *creations) begin(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.templates.Has(replicatedJobOf(c.jobs[i])) {
		return false
	}
	c.asked = max(c.asked, i+1)
	return true
}

// end notes what became of a Job.
func (c *creations) end(i int, created bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case created:
		c.created++
		return
	case err == nil:
		c.taken++
		return
	}
	c.refused++
	switch reachOf(c.jobs[i].Name, err) {
	case allJobs:
		c.over, c.quiet = true, c.quiet || terminatingNamespace(err)
	case sameTemplate:
		c.templates.Insert(replicatedJobOf(c.jobs[i]))
	}
	c.over = c.over || c.refused-c.created >= maxRefusals
}

// createJob returns whether it has created the Job.
func (a *applier) createJob(ctx context.Context, job *batchv1.Job) (bool, error) {
	name := cache.MetaObjectToName(job).String()
	if _, taken := a.takenJobs.Get(name); taken {
		a.count(func() { a.taken = append(a.taken, job.Name) })
		return false, nil
	}
	client := a.Kube.BatchV1().Jobs(job.Namespace)
	created, err := client.Create(ctx, job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := client.Get(ctx, job.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			a.count(func() { a.freed++ })
			return false, nil
		case getErr != nil:
		case !metav1.IsControlledBy(existing, a.js):
			// No failure: the Jobs of other names are created, and this one when its name is free.
			a.takenJobs.Add(name, true, a.namesKept-namesAskedBefore)
			a.count(func() { a.taken = append(a.taken, job.Name) })
			return false, nil
		case existing.Labels[jobsetv1alpha2.JobSetNameKey] != "":
			return false, nil // the cache will show it
		case plan.LostLabels(existing)[jobsetv1alpha2.JobSetNameKey] != "":
			return false, a.restoreLabels(ctx, existing)
		default:
			err = fmt.Errorf("%w, without the label %s on itself and on its pods", err, jobsetv1alpha2.JobSetNameKey)
		}
	}
	if err != nil {
		return false, fmt.Errorf("job %q creation failed with error: %w", job.Name, err)
	}
	a.accepted.Add(1)
	a.writes.Wrote(a.key, resourceJobs, created.ResourceVersion)
	return true, nil
}

func replicatedJobOf(job *batchv1.Job) string { return job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] }
