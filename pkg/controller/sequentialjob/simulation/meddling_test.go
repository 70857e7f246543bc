// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what others do to children and to their names, and what the API refuses.

// meddle is what a user may do to children, and what the API may refuse.
func (e *env) meddle() {
	own := e.own()
	switch n := e.Dice.IntN(100); {
	case n < 25 && len(own) > 0:
		child := simulation.OneOf(e.Dice, own...)
		e.Note("somebody deletes child %s", child.GetName())
		e.deleteChild(child)
		e.Seen["children deleted by others"]++
	case n < 45 && len(own) > 0:
		e.vanish(simulation.OneOf(e.Dice, own...))
	case n < 55 && len(own) > 0:
		e.unlabel(simulation.OneOf(e.Dice, own...))
	case n < 68 && e.sequence() != nil:
		e.occupyName()
	case n < 74:
		e.removeForeign()
	case n < 81:
		e.unreadable = simulation.OneOf[error](e.Dice, nil, simulation.ErrServer, simulation.ErrTimeout, errForbidden)
		e.Note("what runs cannot be read: %v", e.unreadable)
	case n < 88:
		e.denial = simulation.OneOf(e.Dice, denials...)
		e.Note("no child can be created: %v", e.denial)
	case n < 94:
		verb := simulation.OneOf(e.Dice, verbs...)
		e.refusals[verb] = simulation.OneOf(e.Dice, answers...)
		e.Note("the API refuses to %s: %v", verb, e.refusals[verb])
	default:
		e.denial = nil
		clear(e.refusals)
	}
}

// vanish deletes a child in the background, or orphans what it has: it is gone at once.
func (e *env) vanish(child metav1.Object) {
	e.Note("child %s vanishes", child.GetName())
	e.Seen["children that vanished"]++
	if view(child).End == "" {
		e.outlive(child)
	}
	e.removeChild(child)
}

// unlabel removes the label by which the caches select children.
func (e *env) unlabel(child metav1.Object) {
	e.Note("somebody removes the labels of child %s", child.GetName())
	e.Seen["children that lost their labels"]++
	e.rules.stripped[child.GetUID()] = true
	e.changeChild(child, func(j *batchv1.Job) { delete(j.Labels, batchv1alpha1.SequentialJobUIDKey) },
		func(s *jobsetv1alpha2.JobSet) { delete(s.Labels, batchv1alpha1.SequentialJobUIDKey) })
}

var (
	errWebhook   = apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errors.New("admission webhook denied the request"))
	errForbidden = apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errors.New("the controller lacks the permission"))
	errQuota     = apierrors.NewForbidden(batchv1.Resource("jobs"), "x", errors.New(
		"exceeded quota: small, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"))
	errRetryLater = apierrors.NewTooManyRequests("later", 1)

	denials = []error{errWebhook, errForbidden, errQuota, errRetryLater, simulation.ErrServer}
	answers = []error{errWebhook, errForbidden, errRetryLater, simulation.ErrServer}
	verbs   = []string{"delete child", "patch child", "patch sequence", "patch workload", "update status"}
)

// occupyName creates an object that the sequence does not own, with a name that the sequence needs. It may have our labels, as a copy has.
func (e *env) occupyName() {
	wanted := helper.ChildName(name, e.Dice.IntN(3))
	_, isJob := e.jobs.Get(wanted)
	_, isJobSet := e.jobSets.Get(wanted)
	meta := metav1.ObjectMeta{Name: wanted, Namespace: namespace, UID: types.UID("foreign-" + strconv.Itoa(e.jobs.Versions.Last+e.jobSets.Versions.Last))}
	if e.Dice.Percent(50) {
		meta.Labels = map[string]string{batchv1alpha1.SequentialJobUIDKey: string(e.sequence().UID), batchv1alpha1.StepAttemptKey: "1"}
	}
	switch {
	case e.Dice.Percent(50) && !isJob:
		e.Note("somebody creates a job named %s", wanted)
		e.jobs.Put(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Suspend: ptr.To(true)}})
	case !isJobSet:
		e.Note("somebody creates a jobset named %s", wanted)
		e.jobSets.Put(&jobsetv1alpha2.JobSet{ObjectMeta: meta, Spec: jobsetv1alpha2.JobSetSpec{Suspend: ptr.To(true)}})
	}
}

// removeForeign removes an object that is no child. It reports whether there was one.
func (e *env) removeForeign() bool {
	all := e.children()
	i := slices.IndexFunc(all, func(child metav1.Object) bool { return len(child.GetOwnerReferences()) == 0 })
	if i < 0 {
		return false
	}
	e.Note("%s, which has no owner, is gone", all[i].GetName())
	e.endPods(all[i].GetUID())
	e.removeChild(all[i])
	return true
}
