// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what users do. Actions are carried out by the real code of the server.

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

// randomSet returns a set of up to four groups of up to three pods.
func randomSet(d simulation.Dice) *leaderworkersetv1.LeaderWorkerSet {
	set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	set.Spec = leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To(int32(simulation.OneOf(d, 1, 1, 2, 2, 3, 4))),
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			WorkerTemplate: podTemplate("a"), GroupSize: ptr.To(int32(simulation.OneOf(d, 1, 2, 2, 3))), RestartPolicy: randomPolicy(d),
		},
		RolloutStrategy: leaderworkersetv1.RolloutStrategy{
			Type:                       leaderworkersetv1.RolloutStrategyRollingUpdate,
			RollingUpdateConfiguration: randomRollout(d),
		},
		StartupPolicy: simulation.OneOf(d, leaderworkersetv1.StartupPolicyLeaderCreated, leaderworkersetv1.StartupPolicyLeaderCreated, leaderworkersetv1.StartupPolicyLeaderReady),
		NetworkConfig: &leaderworkersetv1.NetworkConfig{SubdomainPolicy: simulation.OneOf(d, ptr.To(leaderworkersetv1.SubdomainShared), ptr.To(leaderworkersetv1.SubdomainUniquePerReplica))},
	}
	if d.Percent(25) {
		set.Spec.LeaderWorkerTemplate.LeaderTemplate = ptr.To(podTemplate("l"))
	}
	if d.Percent(25) {
		set.Spec.RevisionHistoryLimit = ptr.To(int32(d.IntN(3)))
	}
	if d.Percent(20) {
		set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: domainKey}
	}
	limitRestarts(d, set)
	return set
}

func randomPolicy(d simulation.Dice) leaderworkersetv1.RestartPolicyType {
	return simulation.OneOf(d, leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart, leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
		leaderworkersetv1.RestartPolicyRecreateGroupAfterStart, leaderworkersetv1.RestartPolicyNone)
}

func randomRollout(d simulation.Dice) *leaderworkersetv1.RollingUpdateConfiguration {
	unavailable, surge := d.IntN(3), simulation.OneOf(d, 0, 0, 1, 2)
	if unavailable+surge == 0 {
		unavailable = 1
	}
	return &leaderworkersetv1.RollingUpdateConfiguration{
		Partition: ptr.To(int32(simulation.OneOf(d, 0, 0, 0, 0, 1, 2))), MaxUnavailable: ptr.To(intstr.FromInt32(int32(unavailable))), MaxSurge: ptr.To(intstr.FromInt32(int32(surge))),
	}
}

// limitRestarts gives a set a limit of restarts, or a backoff, or neither.
func limitRestarts(d simulation.Dice, set *leaderworkersetv1.LeaderWorkerSet) {
	set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, set.Spec.GroupRestartBackoff = nil, nil
	if set.Spec.LeaderWorkerTemplate.RestartPolicy != leaderworkersetv1.RestartPolicyNone && d.Percent(20) {
		set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To(int32(d.IntN(3)))
	}
	if d.Percent(15) {
		set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](5), MaxSeconds: ptr.To[int32](20)}
	}
}

func (e *env) createSet() {
	set := e.template.DeepCopy()
	set.UID, set.CreationTimestamp, set.Generation = e.NewUID("set"), metav1.NewTime(e.Now().Truncate(time.Second)), 1
	e.Note("user creates the set %s: %s", set.UID, describeSpec(set))
	e.rules.setCreated(set)
	e.sets.Put(set)
}

// userActs is what users do to the set.
func (e *env) userActs() {
	set := e.set()
	switch n := e.Dice.IntN(100); {
	case e.outage:
	case set == nil:
		if e.Dice.Percent(30) {
			e.createSet()
		}
	case n < 2:
		e.orphanSet(set)
	case n < 4:
		e.Note("user deletes the set")
		e.Seen["deletions"]++
		e.sets.Remove(name)
	case n < 25:
		e.restart(set)
	case n < 31:
		e.rollback(set)
	default:
		e.edit(set)
	}
}

func hub(set *leaderworkersetv1.LeaderWorkerSet) *leaderworkerset.LeaderWorkerSet {
	var out leaderworkerset.LeaderWorkerSet
	if err := leaderworkersetv1.Convert_v1_LeaderWorkerSet_To_leaderworkerset_LeaderWorkerSet(set.DeepCopy(), &out, nil); err != nil {
		panic(err)
	}
	return &out
}

func served(set *leaderworkerset.LeaderWorkerSet) *leaderworkersetv1.LeaderWorkerSet {
	var out leaderworkersetv1.LeaderWorkerSet
	if err := leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(set, &out, nil); err != nil {
		panic(err)
	}
	return &out
}

// restart lets a user ask for the restart of a group, or of all.
func (e *env) restart(set *leaderworkersetv1.LeaderWorkerSet) {
	spec, what := &batch.LeaderWorkerSetRestartSpec{Reason: "because"}, "all groups"
	if n := int(*set.Spec.Replicas); n > 0 && e.Dice.Percent(60) {
		spec.Group = ptr.To(int32(e.Dice.IntN(n)))
		what = "group " + strconv.Itoa(int(*spec.Group))
	}
	e.askToRestart(set, spec, what)
}

// askToRestart lets a user ask for a restart.
func (e *env) askToRestart(set *leaderworkersetv1.LeaderWorkerSet, spec *batch.LeaderWorkerSetRestartSpec, what string) {
	next := hub(set)
	answer, err := actions.Restart(next, spec, actions.Call{User: "alice", Now: e.Now()})
	if err != nil {
		e.Note("user asks to restart %s: %v", what, err)
		return
	}
	e.Note("user asks to restart %s: %s", what, answer.Message)
	if answer.Time != nil {
		e.rules.askedToRestart(spec.Group)
	}
	e.put(set, served(next), "restarts on request")
}

// autoscale lets an autoscaler change the number of groups, and nothing else.
func (e *env) autoscale() {
	set := e.set()
	if set == nil || e.outage {
		return
	}
	next := set.DeepCopy()
	next.Spec.Replicas = ptr.To(int32(e.Dice.IntN(5)))
	e.Note("the autoscaler asks for %d groups", *next.Spec.Replicas)
	e.put(set, next, "scalings")
}

// rollback lets a user return to the template of a former revision.
func (e *env) rollback(set *leaderworkersetv1.LeaderWorkerSet) {
	next := set.DeepCopy()
	next.Spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate("a")
	e.Note("user returns to the first template")
	e.put(set, next, "rollbacks")
}

// edit lets a user change the spec.
func (e *env) edit(set *leaderworkersetv1.LeaderWorkerSet) {
	next := set.DeepCopy()
	spec := &next.Spec
	what := simulation.OneOf(e.Dice, "image", "image", "image", "image", "size", "replicas", "replicas", "replicas", "rollout", "rollout", "policy", "limit", "pause", "history", "network", "startup")
	switch what {
	case "image":
		image := fmt.Sprint("b", e.sets.Versions.Last)
		if e.Dice.Percent(20) {
			image = "bad" + image
		}
		spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate(image)
	case "size":
		spec.LeaderWorkerTemplate.GroupSize = ptr.To(int32(1 + e.Dice.IntN(3)))
	case "replicas":
		spec.Replicas = ptr.To(int32(e.Dice.IntN(5)))
	case "rollout":
		spec.RolloutStrategy.RollingUpdateConfiguration = randomRollout(e.Dice)
	case "policy":
		spec.LeaderWorkerTemplate.RestartPolicy = randomPolicy(e.Dice)
		limitRestarts(e.Dice, next)
	case "limit":
		limitRestarts(e.Dice, next)
	case "pause":
		spec.Paused = ptr.To(!ptr.Deref(spec.Paused, false))
	case "history":
		spec.RevisionHistoryLimit = ptr.To(int32(e.Dice.IntN(3)))
	case "network":
		spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)
	case "startup":
		spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
	}
	e.Note("user changes %s: %s", what, describeSpec(next))
	e.put(set, next, "edits")
}

// put stores what a user has changed.
func (e *env) put(before, next *leaderworkersetv1.LeaderWorkerSet, what string) {
	if !equality.Semantic.DeepEqual(before.Spec, next.Spec) {
		next.Generation++
	}
	if equality.Semantic.DeepEqual(before, next) {
		return
	}
	e.Seen[what]++
	e.rules.edited(before, next)
	e.sets.Put(next)
}
