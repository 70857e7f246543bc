// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the defects that are built in on purpose.

// deciding is a controller that is given something else than what is, or does something else than what is decided.
func deciding(misread func(*plan.Observed), does func(plan.Observed, *plan.Plan)) mutant {
	return mutant{decide: simulation.Deciding(plan.Decide, copied, misread, does)}
}

// hasty deletes the leaders of groups right when their failure is recorded.
func hasty(o plan.Observed, p *plan.Plan) {
	if p.Status == nil {
		return
	}
	for i := range o.Leaders {
		leader := &o.Leaders[i]
		for _, g := range p.Status.Groups {
			if g.RestartedLeader == leader.UID && !leader.Deleting && !g.Failed {
				p.DeleteLeaders = append(p.DeleteLeaders, plan.Deletion{Ref: leader.Ref})
			}
		}
	}
}

func stillThere(o *plan.Observed) {
	for i := range o.Leaders {
		o.Leaders[i].Deleting = false
	}
}

func countAgain(_ plan.Observed, p *plan.Plan) {
	if p.Status != nil {
		p.Status = p.Status.DeepCopy()
		for i := range p.Status.Groups {
			p.Status.Groups[i].Restarts++
		}
	}
}

func unlimited(o *plan.Observed) { o.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = nil }

func neverRestarted(o *plan.Observed) {
	for i := range o.Leaders {
		o.Leaders[i].Restarted = false
	}
	for i := range o.Workers {
		for j := range o.Workers[i].Pods {
			o.Workers[i].Pods[j].Restarted = false
		}
	}
}

func dropRequest(_ plan.Observed, p *plan.Plan) {
	if p.Status != nil && p.Status.Restart != nil {
		p.Status = p.Status.DeepCopy()
		p.Status.Restart = nil
	}
}

func endRequest(o plan.Observed, p *plan.Plan) {
	if r := o.Set.Status.Restart; r != nil && r.Found {
		p.Status = o.Set.Status.DeepCopy()
		p.Status.Restart = nil
	}
}

func modernWorkers(o plan.Observed, p *plan.Plan) {
	for i := range p.CreateWorkers {
		sts := p.CreateWorkers[i].StatefulSet.DeepCopy()
		sts.Labels[leaderworkersetv1.RevisionKey] = o.Leader.Labels[leaderworkersetv1.RevisionKey]
		sts.Spec.Template.Labels[leaderworkersetv1.RevisionKey] = o.Leader.Labels[leaderworkersetv1.RevisionKey]
		p.CreateWorkers[i].StatefulSet = sts
	}
}

// moved changes the partition that is applied within a revision.
func moved(o plan.Observed, p *plan.Plan, to func(partition int32) int32) {
	if o.Leader == nil || p.ApplyLeader == nil || o.Leader.Labels[leaderworkersetv1.RevisionKey] != p.ApplyLeader.Labels[leaderworkersetv1.RevisionKey] {
		return
	}
	p.ApplyLeader = p.ApplyLeader.DeepCopy()
	partition := &p.ApplyLeader.Spec.UpdateStrategy.RollingUpdate.Partition
	*partition = ptr.To(to(ptr.Deref(*partition, 0)))
}

func rushed(o plan.Observed, p *plan.Plan) { moved(o, p, func(int32) int32 { return 0 }) }

func back(o plan.Observed, p *plan.Plan) { moved(o, p, func(n int32) int32 { return n + 2 }) }

func stuck(o plan.Observed, p *plan.Plan) {
	if o.Leader != nil {
		moved(o, p, func(int32) int32 { return int32(partitionOf(o.Leader)) })
	}
}

// hoard makes a revision at each pass, as one whose apply fails does.
func hoard(o plan.Observed, p *plan.Plan) {
	p.DeleteRevisions = nil
	if len(o.Revisions) > 0 && p.CreateRevision == nil {
		next := o.Revisions[0].DeepCopy()
		next.Name, next.UID = next.Name+"-"+strconv.Itoa(len(o.Revisions)), types.UID("")
		p.CreateRevision = next
	}
}

func allReady(o *plan.Observed) {
	for i := range o.Leaders {
		o.Leaders[i].Ready, o.Leaders[i].Phase = true, corev1.PodRunning
	}
	for i := range o.Workers {
		o.Workers[i].Ready = true
	}
}

func scribble(o plan.Observed, _ *plan.Plan) {
	o.Set.Spec.Replicas = ptr.To(ptr.Deref(o.Set.Spec.Replicas, 1) + 1)
}

func unobserved(o plan.Observed, p *plan.Plan) {
	if p.Status != nil {
		p.Status = p.Status.DeepCopy()
		p.Status.ObservedGeneration = o.Set.Status.ObservedGeneration
	}
}

// trusting takes whatever generation the leader StatefulSet has for the one that was applied.
func trusting(o *plan.Observed) {
	if o.Leader != nil && o.AppliedGeneration != 0 {
		o.AppliedGeneration = o.Leader.Generation
	}
}

// passive leaves it to the StatefulSet controller to replace leaders.
func passive(_ plan.Observed, p *plan.Plan) {
	p.DeleteLeaders = slices.DeleteFunc(slices.Clone(p.DeleteLeaders), func(d plan.Deletion) bool { return d.Event == nil })
}

// early does not wait until the StatefulSet controller knows of an update.
func early(o *plan.Observed) {
	if o.Leader != nil {
		o.Leader.Status.ObservedGeneration = o.Leader.Generation
	}
}

// greedy deletes all leaders that an update has released as soon as it deletes any.
func greedy(o plan.Observed, p *plan.Plan) {
	if o.Leader == nil || !slices.ContainsFunc(p.DeleteLeaders, func(d plan.Deletion) bool { return d.Event == nil }) {
		return
	}
	for i := range o.Leaders {
		leader := &o.Leaders[i]
		if leader.Ready && !leader.Deleting && ordinalNamed(leader.Name) >= partitionOf(o.Leader) && leader.Revision != o.Leader.Labels[leaderworkersetv1.RevisionKey] {
			p.DeleteLeaders = append(p.DeleteLeaders, plan.Deletion{Ref: leader.Ref})
		}
	}
}

func anywhere(_ plan.Observed, p *plan.Plan) {
	for i := range p.CreateWorkers {
		p.CreateWorkers[i].StatefulSet = p.CreateWorkers[i].StatefulSet.DeepCopy()
		p.CreateWorkers[i].Spec.Template.Spec.NodeSelector = nil
	}
}

func tooMany(o plan.Observed, p *plan.Plan) {
	if p.ApplyLeader != nil && o.Leader != nil {
		p.ApplyLeader = p.ApplyLeader.DeepCopy()
		*p.ApplyLeader.Spec.Replicas++
	}
}

// sameKey stores a new template under the key that the leader StatefulSet has.
func sameKey(o plan.Observed, p *plan.Plan) {
	if o.Leader != nil && p.CreateRevision != nil {
		p.CreateRevision = p.CreateRevision.DeepCopy()
		p.CreateRevision.Labels[leaderworkersetv1.RevisionKey] = o.Leader.Labels[leaderworkersetv1.RevisionKey]
	}
}

// forgetBirths hides how old StatefulSets of workers are.
func forgetBirths(o *plan.Observed) {
	for i := range o.Workers {
		o.Workers[i].CreatedAt = metav1.Time{}
	}
}

// everStarted takes workers that are deleted before they have started for those of a complete group that have.
func everStarted(o *plan.Observed) {
	for i := range o.Workers {
		w := &o.Workers[i]
		w.NeverComplete = false
		for j := range w.Pods {
			if pod := &w.Pods[j]; pod.Deleting && pod.Phase == corev1.PodPending {
				pod.Phase = corev1.PodRunning
			}
		}
	}
}

// overlookDeleted does not see what becomes of leaders when others delete them.
func overlookDeleted(o *plan.Observed) {
	o.GoneLeaders, o.Evaluated = nil, map[types.UID]bool{}
	for i := range o.Leaders {
		o.Evaluated[o.Leaders[i].UID] = true
	}
}

// evaluateAgain forgets that deletions of leaders were evaluated, and stored.
func evaluateAgain(o *plan.Observed) {
	o.Evaluated = nil
	for i := range o.Set.Status.Groups {
		o.Set.Status.Groups[i].RestartedLeader = ""
	}
}

// wordless reports nothing about names that others have.
func wordless(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.TakenServices, r.TakenWorkers, r.LeaderError = nil, nil, ""
	return plan.Finish(o, p, r)
}

// tidyAway keeps the revisions of leaders that exist, and that of the spec.
func tidyAway(o plan.Observed, p *plan.Plan) {
	if o.Leader == nil || p.CreateRevision != nil || p.ApplyLeader != nil {
		return
	}
	used := map[string]bool{o.Leader.Labels[leaderworkersetv1.RevisionKey]: true}
	for i := range o.Leaders {
		used[o.Leaders[i].Revision] = true
	}
	p.DeleteRevisions = nil
	for _, revision := range o.Revisions {
		if !used[revision.Labels[leaderworkersetv1.RevisionKey]] {
			p.DeleteRevisions = append(p.DeleteRevisions, plan.Ref{Name: revision.Name, UID: revision.UID})
		}
	}
	slices.SortFunc(p.DeleteRevisions, func(a, b plan.Ref) int { return strings.Compare(a.Name, b.Name) })
}
