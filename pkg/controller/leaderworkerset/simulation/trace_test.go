// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// copied returns a copy of a snapshot, to be compared after the decision.
func copied(o plan.Observed) *plan.Observed {
	o.Set = o.Set.DeepCopy()
	o.Leader = o.Leader.DeepCopy()
	o.Leaders = append([]plan.Pod(nil), o.Leaders...)
	o.Workers = append([]plan.Workers(nil), o.Workers...)
	for i := range o.Workers {
		o.Workers[i].Pods = append([]plan.Pod(nil), o.Workers[i].Pods...)
	}
	o.Services = append([]plan.Child(nil), o.Services...)
	o.Orphans = append([]plan.Orphan(nil), o.Orphans...)
	revisions := make([]*appsv1.ControllerRevision, 0, len(o.Revisions))
	for _, r := range o.Revisions {
		revisions = append(revisions, r.DeepCopy())
	}
	if o.Revisions != nil {
		o.Revisions = revisions
	}
	return &o
}

// describe returns a snapshot in one line.
func describe(o plan.Observed) string {
	words := []string{fmt.Sprintf("%s@%s, generation %d, %s", o.Set.UID, o.Set.ResourceVersion, o.Set.Generation, describeStatus(&o.Set.Status))}
	if o.Leader != nil {
		words = append(words, "leaders "+describeLeader(o.Leader))
	}
	for i := range o.Leaders {
		words = append(words, describePod(&o.Leaders[i]))
	}
	for i := range o.Workers {
		w := &o.Workers[i]
		words = append(words, fmt.Sprintf("%s(%s of %s %s %d/%d ready %t deleting %t lost %d", w.Name, w.UID, w.Leader, w.Revision, w.Created, w.Replicas, w.Ready, w.Deleting, w.Lost))
		for j := range w.Pods {
			words = append(words, describePod(&w.Pods[j]))
		}
		words = append(words, ")")
	}
	return strings.Join(words, " ")
}

func describePod(p *plan.Pod) string {
	return fmt.Sprintf("%s[%s %s %s ready %t restarted %t deleting %t]", p.Name, p.UID, p.Revision, p.Phase, p.Ready, p.Restarted, p.Deleting)
}

func describeLeader(sts *appsv1.StatefulSet) string {
	return fmt.Sprintf("%s partition %d of %d at %s", sts.UID, partitionOf(sts), ptr.Deref(sts.Spec.Replicas, -1), sts.Labels[leaderworkersetv1.RevisionKey])
}

func describeStatus(s *leaderworkersetv1.LeaderWorkerSetStatus) string {
	words := []string{fmt.Sprintf("[%d replicas, %d ready, %d updated", s.Replicas, s.ReadyReplicas, s.UpdatedReplicas)}
	for i := range s.Groups {
		g := &s.Groups[i]
		words = append(words, fmt.Sprintf("group %d: %d restarts, %s, failed %t", g.Index, g.Restarts, g.RestartedLeader, g.Failed))
	}
	if r := s.Restart; r != nil {
		words = append(words, fmt.Sprintf("restart all %t groups %v found %t leaders %v", r.All, r.Groups, r.Found, r.Leaders))
	}
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return strings.Join(words, " ") + "]"
}

// describePlan returns a plan in one line.
func describePlan(p plan.Plan) string {
	var words []string
	if p.CreateRevision != nil {
		words = append(words, "create revision "+p.CreateRevision.Name)
	}
	if p.ApplyLeader != nil {
		words = append(words, "apply "+describeLeader(p.ApplyLeader))
	}
	for _, s := range p.CreateServices {
		words = append(words, "create service "+s.Name)
	}
	for _, d := range p.DeleteLeaders {
		words = append(words, fmt.Sprintf("delete leader %s (%s)", d.Name, d.UID))
	}
	for _, w := range p.CreateWorkers {
		words = append(words, "create workers "+w.Name)
	}
	for _, g := range p.CreatePodGroups {
		words = append(words, "create podgroup "+g.GetName())
	}
	for _, w := range p.TouchWorkers {
		words = append(words, "touch "+w.Name)
	}
	if p.TouchLeader {
		words = append(words, "touch the leaders")
	}
	for _, r := range p.DeleteRevisions {
		words = append(words, "delete revision "+r.Name)
	}
	if p.Status != nil {
		words = append(words, "status "+describeStatus(p.Status))
	}
	return strings.Join(append(words, fmt.Sprintf("again after %s", p.RequeueAfter)), ", ")
}

// describeSpec returns what matters of a set in one line.
func describeSpec(set *leaderworkersetv1.LeaderWorkerSet) string {
	t := &set.Spec.LeaderWorkerTemplate
	return fmt.Sprintf("R %d, size %d, image %s, U %d, S %d, P %d, %s, %s, unique %t, limit %d, backoff %t, paused %t, history %d", helper.Replicas(set), helper.Size(set),
		t.WorkerTemplate.Spec.Containers[0].Image, helper.MaxUnavailable(set), helper.MaxSurge(set), helper.Partition(set), t.RestartPolicy, set.Spec.StartupPolicy,
		helper.UniquePerReplica(set.Spec.NetworkConfig), ptr.Deref(t.MaxGroupRestarts, -1), set.Spec.GroupRestartBackoff != nil, helper.Paused(set), ptr.Deref(set.Spec.RevisionHistoryLimit, 0))
}
