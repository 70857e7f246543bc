// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// LeaderWorkerSetUpdate is what becomes of the replicas of a set that exists, if all of them are ready.
type LeaderWorkerSetUpdate struct {
	// Rolls reports that the set gets another revision, and From and To are the keys of the revisions before and after.
	Rolls bool   `json:"rolls"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	// AtATime is how many replicas may be unavailable, and Surge how many there may be above replicas.
	AtATime int32 `json:"atATime,omitempty"`
	Surge   int32 `json:"surge,omitempty"`
	// Stages are the states that the leader StatefulSet goes through. None for large sets.
	Stages []Stage `json:"stages,omitempty"`
}

// describeUpdate explains what each change does, and what becomes of the replicas.
func (p *leaderWorkerSetPreviewer) describeUpdate(live, next *leaderworkersetv1.LeaderWorkerSet) {
	p.set = next
	p.count()
	u := leaderWorkerSetUpdate{live: live, next: p.set}
	u.from, u.to = keyOf(live), keyOf(p.set)
	payload, err := helper.RevisionPayload(live)
	u.rolls = err != nil || !helper.SameRevision(p.set, payload)
	p.out.describe(u.effect)
	if len(p.out.Changes) == 0 {
		return
	}
	out := LeaderWorkerSetUpdate{Rolls: u.rolls, AtATime: helper.MaxUnavailable(p.set), Surge: helper.MaxSurge(p.set)}
	if u.rolls {
		out.From, out.To = u.from, u.to
	}
	if max(helper.Replicas(live), helper.Replicas(p.set)) <= maxModelled {
		var before, after *appsv1.StatefulSet
		out.Stages, before, after = rollout(live, p.set)
		if !u.rolls && before != nil && after != nil && !reflect.DeepEqual(before.Spec.Template, after.Spec.Template) {
			p.out.Notes = append(p.out.Notes,
				"the template of the leader pods changes without a new revision: the leaders, and with them their groups, are replaced at once as "+
					"the StatefulSet allows, and status does not report an update")
		}
	}
	if out.Rolls || len(out.Stages) > 0 {
		p.out.Update = &out
	}
}

func keyOf(set *leaderworkersetv1.LeaderWorkerSet) string {
	payload, err := helper.RevisionPayload(set)
	if err != nil {
		return ""
	}
	return helper.RevisionKey(payload)
}

// leaderWorkerSetUpdate is a change of a set that exists.
type leaderWorkerSetUpdate struct {
	live, next *leaderworkersetv1.LeaderWorkerSet
	from, to   string
	rolls      bool
}

// effect returns what the change of a field does, once the server has accepted it.
func (u leaderWorkerSetUpdate) effect(field string) (Effect, string) {
	const template = "spec.leaderWorkerTemplate."
	under := func(prefix string) bool { return strings.HasPrefix(field, prefix) }
	switch {
	case under("metadata."):
		return u.metadataEffect(field)
	case under(template + "volumeClaimTemplates"):
		return EffectNever, "is never applied: a StatefulSet does not allow changes of its claims. The set gets a new revision, the update " +
			"fails with FailedUpdate, and no group is replaced until the change is reverted; to have it, create a set of another name"
	case under(template + "maxGroupRestarts"):
		return EffectImmediate, "limits restarts from now on; no group is replaced"
	case under(template), under("spec.networkConfig"):
		if !u.rolls {
			return EffectNone, "means the same as before: no group is replaced"
		}
		return u.rollEffect()
	case under("spec.replicas"):
		return u.scaleEffect()
	case under("spec.paused"):
		if helper.Paused(u.next) {
			return EffectImmediate, "pauses rolling updates: no further group is replaced"
		}
		return EffectImmediate, "resumes rolling updates: groups of a former revision are replaced"
	}
	return u.policyEffect(field)
}

// policyEffect is the effect of fields that replace no replica.
func (u leaderWorkerSetUpdate) policyEffect(field string) (Effect, string) {
	switch {
	case strings.HasPrefix(field, "spec.rolloutStrategy.rollingUpdateConfiguration.partition"):
		return EffectRoll, fmt.Sprintf("groups from index %d up get the current revision, those below keep theirs", helper.Partition(u.next))
	case strings.HasPrefix(field, "spec.rolloutStrategy"):
		return EffectImmediate, "holds for rolling updates from now on, also for one that is under way"
	case strings.HasPrefix(field, "spec.startupPolicy"):
		return EffectNextReplica, "groups that are created from now on have it"
	case strings.HasPrefix(field, "spec.revisionHistoryLimit"):
		return EffectImmediate, "decides how many former revisions are kept for a rollback"
	case strings.HasPrefix(field, "spec.groupRestartBackoff"):
		return EffectImmediate, "delays restarts after failures from now on"
	}
	return EffectNone, "no pod changes"
}

func (u leaderWorkerSetUpdate) metadataEffect(field string) (Effect, string) {
	switch {
	case strings.Contains(field, leaderworkersetv1.ExclusiveKeyAnnotationKey),
		strings.Contains(field, leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey):
		return EffectRoll, "is in the template of the pods: all leaders, and with them their groups, are replaced, which status does not " +
			"report as an update"
	case strings.HasPrefix(field, "metadata.labels"), strings.HasPrefix(field, "metadata.annotations"):
		return EffectNone, "the StatefulSets get it; no pod is replaced"
	}
	return EffectNone, "no pod changes"
}

func (u leaderWorkerSetUpdate) rollEffect() (Effect, string) {
	if helper.Paused(u.next) {
		return EffectOnResume, "replaces groups once rolling updates are resumed"
	}
	return EffectRoll, "replaces groups by a rolling update"
}

func (u leaderWorkerSetUpdate) scaleEffect() (Effect, string) {
	was, is := helper.Replicas(u.live), helper.Replicas(u.next)
	switch {
	case is > was:
		return EffectScale, "creates " + replicaNames(was, is-1)
	case is < was:
		return EffectScale, "deletes " + replicaNames(is, was-1)
	}
	return EffectNone, "no group is created or deleted"
}

func replicaNames(first, last int32) string {
	if first == last {
		return fmt.Sprintf("group %d", first)
	}
	return fmt.Sprintf("groups %d to %d", first, last)
}
