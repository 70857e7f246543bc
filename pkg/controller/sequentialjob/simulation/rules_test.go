// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Rules, by the names under which they are broken.
const (
	ruleOne        = "never are two children active"
	ruleOrder      = "no step runs out of order"
	ruleOnce       = "a finished step never runs again"
	ruleRecorded   = "a child is of an attempt that was recorded before"
	ruleAttempt    = "an attempt is one child"
	ruleSuspended  = "a suspended sequence starts nothing"
	ruleFinalizer  = "the finalizer is there while a child is active"
	ruleKept       = "no child of the current attempt is stopped"
	ruleStopped    = "what runs is not stopped unless the user, the policy or a lost node asked"
	ruleCause      = "every attempt that follows another has a cause"
	ruleTimes      = "a step ends after it starts, and not in the future"
	ruleQueued     = "only Kueue lets a queued child run"
	ruleWorkload   = "a queued child is suspended only if it is known whether it has a Workload"
	ruleFinished   = "a finished sequence stays so unless it is retried"
	ruleMonotonic  = "what the status counts never falls"
	ruleCommit     = "a decision that moves a commit point only writes the status"
	ruleEqual      = "equal snapshots lead to equal plans"
	ruleUntouched  = "a decision does not change what it was made on"
	ruleElsewhere  = "a sequence of another controller is left alone"
	ruleTTL        = "a sequence is deleted after its time to live only"
	ruleConditions = "conditions are of one kind each, and their times move with their status only"
)

// attempt is one attempt of one step.
type attempt struct{ index, number int32 }

// rules know what is true about one sequence, and check every decision about it and every write.
type rules struct {
	*env
	uid types.UID
	// recorded are the attempts that status ever had as begun, unknown the children that came into being without the knowledge of the
	// controller, and stripped those whose label another client has removed, so that no cache shows them.
	recorded          map[attempt]bool
	unknown, stripped map[types.UID]bool
	// last is the child that was last created for an attempt, and adopted are the children that a status ever named.
	last    map[attempt]types.UID
	adopted map[types.UID]bool
}

func newRules(e *env, sj *batchv1alpha1.SequentialJob) *rules {
	return &rules{env: e, uid: sj.UID, recorded: map[attempt]bool{}, unknown: map[types.UID]bool{}, last: map[attempt]types.UID{}, adopted: map[types.UID]bool{},
		stripped: map[types.UID]bool{}}
}

func attemptOf(child metav1.Object) attempt {
	index, _ := strconv.Atoi(child.GetLabels()[batchv1alpha1.StepIndexKey])
	number, _ := strconv.Atoi(child.GetLabels()[batchv1alpha1.StepAttemptKey])
	return attempt{int32(index), int32(number)}
}

// created checks a child right before it is stored.
func (r *rules) created(o plan.Observed, child metav1.Object, known bool) {
	if owner := metav1.GetControllerOfNoCopy(child); owner == nil || owner.UID != r.uid {
		if owner == nil || known {
			r.Fail(ruleFinalizer, "child %s is created for a sequence that is gone", child.GetName())
		}
		return // for the garbage collector
	}
	this, sj := attemptOf(child), r.sequence()
	r.Seen["children created"]++
	if !r.recorded[this] {
		r.Fail(ruleRecorded, "child %s is of attempt %d", child.GetName(), this.number)
	}
	earlier := r.last[this]
	r.last[this] = child.GetUID()
	if !known || r.unseenByLeader(o) {
		r.unknown[child.GetUID()] = true
		return
	}
	if r.adopted[earlier] {
		r.Fail(ruleAttempt, "child %s of attempt %d is created again", child.GetName(), this.number)
	}
	seen := &o.SequentialJob.Status
	for i := range this.index {
		if !slices.Contains(seen.Progress.CompletedIndices, i) {
			r.Fail(ruleOrder, "child %s is created, and step %d has not completed", child.GetName(), i)
		}
	}
	switch entry := helper.CurrentStep(seen); {
	case entry == nil || helper.CurrentIndex(seen) != int(this.index) || entry.Attempts != this.number:
		r.Fail(ruleRecorded, "child %s of attempt %d, but the status is %s", child.GetName(), this.number, describeStatus(seen))
	case helper.Suspended(o.SequentialJob):
		r.Fail(ruleSuspended, "child %s is created", child.GetName())
	case sj == nil || sj.UID != r.uid || !contains(sj.Finalizers, batchv1alpha1.SequentialJobFinalizer):
		r.Fail(ruleFinalizer, "child %s is created without it", child.GetName())
	case slices.Contains(sj.Status.Progress.CompletedIndices, this.index) || slices.Contains(seen.Progress.CompletedIndices, this.index):
		r.Fail(ruleOnce, "child %s is created", child.GetName())
	}
	for _, other := range r.own() {
		if view(other).End == "" && !r.unknown[other.GetUID()] {
			r.Fail(ruleOne, "child %s is created while %s is there", child.GetName(), other.GetName())
		}
	}
}

// deleted checks the deletion of a child by the controller.
func (r *rules) deleted(child metav1.Object, known bool) {
	sj, this := r.sequence(), attemptOf(child)
	r.checkOwn(child)
	if !known || sj == nil || !metav1.IsControlledBy(child, sj) || sj.DeletionTimestamp != nil || helper.Finished(sj) != nil || r.unknown[child.GetUID()] {
		return
	}
	entry := helper.CurrentStep(&sj.Status)
	if entry != nil && helper.CurrentIndex(&sj.Status) == int(this.index) && entry.Attempts == this.number && entry.Kind == view(child).Kind && entry.State != batchv1alpha1.StepPending {
		r.Fail(ruleKept, "child %s of attempt %d", child.GetName(), this.number)
	}
}

// finalizersStored checks that the finalizer goes only when no child is active.
func (r *rules) finalizersStored(p *process, before, after *batchv1alpha1.SequentialJob) {
	const finalizer = batchv1alpha1.SequentialJobFinalizer
	if contains(before.Finalizers, finalizer) == contains(after.Finalizers, finalizer) || contains(after.Finalizers, finalizer) || p.rivals {
		return
	}
	mayNotDelete := before.DeletionTimestamp != nil && apierrors.IsForbidden(r.refusals["delete child"]) // then an event says so
	for _, child := range r.own() {
		if view(child).End == "" && !r.unseen(child) && !mayNotDelete {
			r.Fail(ruleFinalizer, "it is removed, and child %s is active", child.GetName())
		}
	}
}

// statusStored checks a status of the controller right before it is stored. busy are the children that had pods at the decision.
func (r *rules) statusStored(busy sets.Set[types.UID], before, after *batchv1alpha1.SequentialJob, known bool) {
	was, is := &before.Status, &after.Status
	if c := helper.Finished(before); c != nil {
		if now := helper.Finished(after); now == nil || now.Type != c.Type || now.Reason != c.Reason {
			r.Fail(ruleFinished, "%s (%s) becomes %v", c.Type, c.Reason, now)
		}
	}
	r.checkSuspended(busy, before, after, known)
	if helper.Finished(before) == nil && helper.Finished(after) != nil {
		r.Seen["ends: "+helper.Finished(after).Reason]++
	}
	for i := range is.Steps {
		if uid := is.Steps[i].ChildUID; uid != "" && known {
			r.adopted[uid] = true // a status that comes late names children that the controller need not know
		}
	}
	for i := range was.Steps {
		switch {
		case i >= len(is.Steps) && helper.Finished(after) == nil:
			r.Fail(ruleMonotonic, "step %d is lost", i)
		case i < len(is.Steps) && (is.Steps[i].Attempts < was.Steps[i].Attempts || is.Steps[i].Attempts > was.Steps[i].Attempts+1):
			r.Fail(ruleMonotonic, "step %d goes from attempt %d to %d", i, was.Steps[i].Attempts, is.Steps[i].Attempts)
		}
	}
	n := len(was.Progress.CompletedIndices)
	switch {
	case helper.CurrentIndex(is) < helper.CurrentIndex(was):
		r.Fail(ruleMonotonic, "the current index goes from %d to %d", helper.CurrentIndex(was), helper.CurrentIndex(is))
	case len(is.Progress.CompletedIndices) < n || !slices.Equal(is.Progress.CompletedIndices[:n], was.Progress.CompletedIndices) && n > 0:
		r.Fail(ruleMonotonic, "the completed steps go from %v to %v", was.Progress.CompletedIndices, is.Progress.CompletedIndices)
	case was.StartTime != nil && !was.StartTime.Equal(is.StartTime):
		r.Fail(ruleMonotonic, "the start moves from %v to %v", was.StartTime, is.StartTime)
	case is.ObservedGeneration > before.Generation || is.ObservedGeneration < was.ObservedGeneration:
		r.Fail(ruleMonotonic, "the observed generation goes from %d to %d of %d", was.ObservedGeneration, is.ObservedGeneration, before.Generation)
	}
	r.conditionsStored(was.Conditions, is.Conditions)
	r.stepsStored(before, after, known)
	r.record(is)
}

func (r *rules) conditionsStored(was, is []metav1.Condition) {
	kinds := map[string]bool{}
	for _, c := range is {
		old := meta.FindStatusCondition(was, c.Type)
		switch {
		case kinds[c.Type]:
			r.Fail(ruleConditions, "two conditions %s", c.Type)
		case old != nil && old.Status == c.Status && !old.LastTransitionTime.Equal(&c.LastTransitionTime):
			r.Fail(ruleConditions, "the time of %s moves without its status", c.Type)
		case c.Reason == "":
			r.Fail(ruleConditions, "%s has no reason", c.Type)
		}
		kinds[c.Type] = true
	}
}

// record notes the attempts that a status has.
func (r *rules) record(status *batchv1alpha1.SequentialJobStatus) {
	for i := range status.Steps {
		if s := &status.Steps[i]; s.State != batchv1alpha1.StepPending {
			r.recorded[attempt{int32(i), s.Attempts}] = true
		}
	}
}

// edited checks what the server makes of a change of the spec.
func (r *rules) edited(before, after *batchv1alpha1.SequentialJob) {
	for i := range before.Status.Steps {
		rise := after.Status.Steps[i].Attempts - before.Status.Steps[i].Attempts
		restarts := after.Spec.UpdateStrategy.Type == batchv1alpha1.UpdateRestart && i == helper.CurrentIndex(&before.Status)
		if rise < 0 || rise > 1 || rise == 1 && !restarts {
			r.Fail(ruleMonotonic, "an edit takes step %d from attempt %d to %d", i, before.Status.Steps[i].Attempts, after.Status.Steps[i].Attempts)
		}
		r.Seen["restarts by an edit"] += int(rise)
	}
	r.record(&after.Status)
}

// acted checks what an action does.
func (r *rules) acted(what, from string, before, after *batchv1alpha1.SequentialJob) {
	for i := range before.Status.Steps {
		was, is := &before.Status.Steps[i], &after.Status.Steps[i]
		completed := slices.Contains(before.Status.Progress.CompletedIndices, int32(i))
		switch rise := is.Attempts - was.Attempts; {
		case rise < 0 || rise > 1 || rise == 1 && what != "restart" && what != "retry":
			r.Fail(ruleMonotonic, "%s takes step %d from attempt %d to %d", what, i, was.Attempts, is.Attempts)
		case rise == 1 && completed && from == "":
			r.Fail(ruleOnce, "%s runs step %d again", what, i)
		}
	}
	r.record(&after.Status)
}

// decided checks a decision. The reference is a copy of the snapshot, if there is one.
func (r *rules) decided(o plan.Observed, p plan.Plan, reference *plan.Observed) {
	writes := len(p.Delete)+len(p.Suspend) > 0 || p.CreateJob != nil || p.CreateJobSet != nil || p.SetWorkloadActive != nil
	if helper.ManagedElsewhere(o.SequentialJob) && (writes || p.AddFinalizer || p.Status != nil || p.RemoveFinalizer || p.DeleteSequentialJob) {
		r.Fail(ruleElsewhere, "%s", describePlan(p))
	}
	if p.Status != nil && writes && committed(o.SequentialJob, p.Status) {
		r.Fail(ruleCommit, "%s", describePlan(p))
	}
	if reference == nil {
		return
	}
	if !reflect.DeepEqual(reference, &o) {
		r.Fail(ruleUntouched, "%s", describe(o))
	}
	slices.Reverse(reference.Children)
	if again := r.decide(*reference); !reflect.DeepEqual(p, again) {
		r.Fail(ruleEqual, "%s, and then %s", describePlan(p), describePlan(again))
	}
}

// committed returns whether a status has a step, an attempt or the sequence begin or end.
func committed(sj *batchv1alpha1.SequentialJob, next *batchv1alpha1.SequentialJobStatus) bool {
	was := &sj.Status
	after := *sj
	after.Status = *next
	if !ptr.Equal(was.Progress.CurrentIndex, next.Progress.CurrentIndex) || len(was.Steps) != len(next.Steps) || (helper.Finished(sj) == nil) != (helper.Finished(&after) == nil) {
		return true
	}
	for i := range was.Steps {
		if was.Steps[i].Attempts != next.Steps[i].Attempts {
			return true
		}
	}
	return false
}

// finished checks what a sync ends with.
func (r *rules) finished(o plan.Observed, _ plan.Plan, out plan.Outcome) {
	if out.Status != nil && helper.ManagedElsewhere(o.SequentialJob) {
		r.Fail(ruleElsewhere, "a status is stored")
	}
}

// sequenceDeleted checks that the time to live is over.
func (r *rules) sequenceDeleted(sj *batchv1alpha1.SequentialJob) {
	r.Seen["sequences deleted after their time to live"]++
	c, ttl := helper.Finished(sj), sj.Spec.TTLSecondsAfterFinished
	if c == nil || ttl == nil {
		r.Fail(ruleTTL, "it has not finished, or has none")
	}
	wait := int64(*ttl)
	if c.Reason == batchv1alpha1.ReasonCancelled {
		wait = max(wait, 300)
	}
	if lived := int64(r.Now().Sub(c.LastTransitionTime.Time).Seconds()); lived < wait {
		r.Fail(ruleTTL, "%s", fmt.Sprintf("it is deleted after %d s, not %d", lived, wait))
	}
}
