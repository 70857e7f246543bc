// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the clients through which the controller writes. The API servers decide what they answer. What happens on
// the way is drawn.

var (
	anyJob     = schema.GroupResource{Group: "batch", Resource: "jobs"}
	errInvalid = apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil)
	errDenied  = apierrors.NewForbidden(anyJob, "j", errors.New("denied by a policy that looks at the name"))
)

// creator returns a client of Services or claims. Any object of a name will do, so they are only created.
func creator[T simulation.Object](p *process, of *simulation.Resource[T]) children.Client[T] {
	return simulation.Client[T]{Resource: of, Sender: p.sender, Own: func(T) bool { return false }}
}

// jobClient is a client of Jobs.
type jobClient struct {
	simulation.Client[*batchv1.Job]
	*process
}

func (c jobClient) Create(_ context.Context, wanted *batchv1.Job, _ metav1.CreateOptions) (*batchv1.Job, error) {
	at := c.observed
	return simulation.Send(c.process.sender, wanted, func(known bool) (*batchv1.Job, error) {
		if _, taken := c.Store.Get(wanted.Name); taken {
			c.Seen["names taken"]++
			return nil, simulation.ErrExists
		}
		if wanted.Name == c.denied {
			c.Seen["Jobs denied by name"]++
			c.process.sender.Denied(simulation.Request("create", "job", wanted), errDenied)
			return nil, errDenied
		}
		job := c.admitted(wanted)
		c.invariants.jobCreated(at, job, known)
		c.Store.Put(job)
		c.Note("  creates job %s", job.Name)
		return job, nil
	})
}

// admitted returns a new Job as the Job API stores it.
func (c jobClient) admitted(wanted *batchv1.Job) *batchv1.Job {
	job := *wanted
	job.UID = c.NewUID("job")
	if job.Spec.Parallelism == nil && job.Spec.Completions == nil {
		job.Spec.Completions = ptr.To[int32](1)
	}
	job.Spec.Parallelism = ptr.To(ptr.Deref(job.Spec.Parallelism, 1))
	job.Spec.Template.Labels = maps.Clone(job.Spec.Template.Labels)
	for key, value := range map[string]string{"controller-uid": string(job.UID), "batch.kubernetes.io/job-name": job.Name} {
		job.Spec.Template.Labels[key] = value
	}
	return &job
}

func (c jobClient) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	_, err := simulation.Send(c.process.sender, nil, func(bool) (*batchv1.Job, error) {
		job, found := c.Store.Get(name)
		switch {
		case !found:
			return nil, simulation.ErrNotFound
		case job.UID != *options.Preconditions.UID && !c.indifferent:
			return nil, simulation.ErrConflict
		}
		c.Note("  deletes job %s", name)
		c.invariants.jobDeleted(job)
		c.deleteJob(job, *options.PropagationPolicy == metav1.DeletePropagationForeground)
		return nil, nil
	})
	return err
}

func (c jobClient) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, subresources ...string) (*batchv1.Job, error) {
	js := c.observed.JobSet
	return simulation.Send(c.process.sender, &batchv1.Job{}, func(bool) (*batchv1.Job, error) {
		job, found := c.Store.Get(name)
		if !found {
			return nil, simulation.ErrNotFound
		}
		next, err := patched(job, patch)
		if err != nil {
			return nil, errInvalid
		}
		if next.ResourceVersion != job.ResourceVersion {
			return nil, simulation.ErrConflict
		}
		if wrong := c.admitPatch(js, job, next, slices.Contains(subresources, "status")); wrong != nil {
			return nil, wrong
		}
		c.Store.Put(next)
		c.gangs.suspended(next)
		return next, nil
	})
}

// admitPatch checks a changed Job as the Job API does, and as invariants do.
func (c jobClient) admitPatch(js *jobsetv1alpha2.JobSet, job, next *batchv1.Job, status bool) error {
	stopped := jobIsSuspended(job) && job.Status.Active == 0
	switch {
	case status:
		if !jobIsSuspended(job) {
			return errInvalid
		}
		c.Note("  clears the start time of job %s", job.Name)
		return nil
	case !equality.Semantic.DeepEqual(job.Spec.Template, next.Spec.Template):
		if !stopped || job.Status.StartTime != nil || next.Spec.Template.Labels["controller-uid"] != string(job.UID) {
			return errInvalid
		}
	case !maps.Equal(job.Labels, next.Labels):
		if c.unkind {
			return simulation.ErrServer
		}
		c.Note("  restores the labels of job %s", job.Name)
		c.Seen["Jobs whose labels were restored"]++
		return nil
	}
	c.Note("  patches job %s", job.Name)
	c.invariants.jobPatched(js, job, next)
	return nil
}

// setClient is a client of JobSets.
type setClient struct{ *process }

func (c setClient) UpdateStatus(_ context.Context, wanted *jobsetv1alpha2.JobSet, _ metav1.UpdateOptions) (*jobsetv1alpha2.JobSet, error) {
	at := c.observed
	return simulation.Send(c.process.sender, wanted, func(known bool) (*jobsetv1alpha2.JobSet, error) {
		current := c.set()
		switch {
		case current == nil:
			return nil, simulation.ErrNotFound
		case current.ResourceVersion != wanted.ResourceVersion && !c.overwriting:
			c.Seen["conflicts"]++
			return nil, simulation.ErrConflict
		case c.deniesStatus:
			c.Seen["statuses denied"]++
			c.process.sender.Denied("update status", errDenied)
			return nil, errDenied
		}
		next := *current
		next.Status = asStored(&wanted.Status)
		c.invariants.statusStored(at, &current.Status, &next.Status, known)
		c.env.jobSets.Put(&next)
		c.Note("  stores the status")
		return &next, nil
	})
}

func (c setClient) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	_, err := simulation.Send(c.process.sender, nil, func(bool) (*jobsetv1alpha2.JobSet, error) {
		js := c.set()
		switch {
		case js == nil:
			return nil, simulation.ErrNotFound
		case js.UID != *options.Preconditions.UID || js.ResourceVersion != *options.Preconditions.ResourceVersion:
			return nil, simulation.ErrConflict
		}
		c.invariants.setDeleted(js)
		c.Note("  deletes the set after its time to live")
		c.changeSet(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(c.Stored()) })
		return nil, nil
	})
	return err
}

// asStored drops what the API does not store of times.
func asStored(status *jobsetv1alpha2.JobSetStatus) jobsetv1alpha2.JobSetStatus {
	stored := *status
	if start := status.StartTime; start != nil {
		stored.StartTime = ptr.To(metav1.NewTime(start.Truncate(time.Second)))
	}
	stored.Conditions = slices.Clone(status.Conditions)
	for i := range stored.Conditions {
		c := &stored.Conditions[i]
		c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Truncate(time.Second))
	}
	return stored
}
