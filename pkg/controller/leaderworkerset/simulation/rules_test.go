// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Rules, by the names under which they are broken.
const (
	ruleRecorded    = "a leader pod is deleted only after status names it"
	ruleOnce        = "a leader pod is deleted once"
	ruleCounted     = "a restart counts once"
	ruleMonotonic   = "what the status counts never falls"
	ruleLimit       = "no group is recreated more often than maxGroupRestarts"
	ruleRequested   = "a requested restart ends when its leader pods are gone"
	ruleMixed       = "no group mixes revisions"
	ruleUnavailable = "a rolling update makes no more groups unavailable than it may"
	rulePartition   = "the partition never rises within a revision"
	ruleBounded     = "the number of revisions is bounded"
	ruleSurge       = "a set has no more groups than replicas and maxSurge"
	ruleNames       = "a key names one template"
	rulePlaced      = "workers are in the domain of their leader"
	ruleGang        = "pods of a gang say so"
	ruleCommit      = "a leader pod is deleted by a later decision than the one that counts"
	ruleCause       = "a group is recreated for a reason"
	ruleRecreated   = "each recreation of a group is in the status"
	ruleEqual       = "equal snapshots lead to equal plans"
	ruleUntouched   = "a decision does not change what it was made on"
)

// maxRevisions is the maximum number of revisions of a set: the history, the revisions that groups have, and the
// revisions of an update that does not end.
const maxRevisions = 20

// rules know what is true about the set, and check every decision about it and every write.
type rules struct {
	*env
	// Each holds UIDs of leader pods: recorded if a status has named the pod as one to delete, counted if a restart of it has counted, and
	// deleted if its deletion was requested.
	recorded, counted, deleted map[types.UID]bool
	// losses are the leaders of worker pods that are gone though their group was complete, by the UID of the worker pod,
	// and lost are those leaders once the process has seen it: they have to go.
	losses, lost map[types.UID]loss
	// leaving are the pods that were being deleted when the process started, if a StatefulSet had no controller then, or the server could not
	// read the set: the group of such a pod may not be known as long as the pod is there.
	leaving sets.Set[types.UID]
	// unseen are the losses, by the UID of the leader, of worker pods that went while no controller ran and that existed
	// according to the status.
	unseen map[types.UID]loss
	// early are the pods whose deletion began while a pod of their group was pending. RecreateGroupAfterStart keeps such a group.
	early map[types.UID]bool
	// requested are the leader pods of groups that users have asked to restart.
	requested map[types.UID]bool
	// failed are the leader pods of groups in which a pod has failed, or a worker that had started was deleted or lost. The leader pods in a
	// stored request are included.
	failed map[types.UID]bool
	// ledBy are the leader pods of StatefulSets of workers.
	ledBy map[types.UID]types.UID
	// struck are the leader pods of groups at rest that a user or a controller deleted, true once the process has seen
	// that the pod is gone. inStatus are the leader pods that a status has named.
	struck   map[types.UID]bool
	inStatus map[types.UID]bool
	// images are the images of worker templates by the key of the revision.
	images map[string]string
	// observed is what the decision was made on that is being carried out; nil for late requests.
	observed *plan.Observed
}

// loss is a worker pod that is gone, by the StatefulSet that it belonged to and its leader.
type loss struct {
	pod             string
	workers, leader types.UID
	at              time.Time
}

func newRules(e *env) *rules {
	return &rules{
		env: e, recorded: map[types.UID]bool{}, counted: map[types.UID]bool{}, deleted: map[types.UID]bool{}, losses: map[types.UID]loss{}, unseen: map[types.UID]loss{},
		lost: map[types.UID]loss{}, early: map[types.UID]bool{}, failed: map[types.UID]bool{}, ledBy: map[types.UID]types.UID{}, struck: map[types.UID]bool{}, inStatus: map[types.UID]bool{}, requested: map[types.UID]bool{}, images: map[string]string{},
	}
}

// setCreated forgets revisions of the set before.
func (r *rules) setCreated(*leaderworkersetv1.LeaderWorkerSet) {
	r.counted, r.struck = map[types.UID]bool{}, map[types.UID]bool{}
	if !r.orphaned {
		r.images = map[string]string{}
	}
}

// processStarted forgets what only the process before has seen, and finds out what this one has to see of the time between them.
func (r *rules) processStarted() {
	r.lost, r.leaving = map[types.UID]loss{}, r.findLeaving()
	maps.DeleteFunc(r.struck, func(uid types.UID, _ bool) bool { return r.podOf(uid) == nil })
	r.findUnseen()
}

// calm returns whether nothing keeps the controller from learning what became of its requests.
func (r *rules) calm() bool {
	return r.Seen["requests in trouble"] == 0 && r.Seen["kills of the controller"] == 0 && r.Seen["second controllers"] == 0 && r.Seen["requests that were refused"] == 0
}

// leaderDeleted checks the deletion of a pod by the controller.
func (r *rules) leaderDeleted(pod *corev1.Pod) {
	r.Seen["leaders deleted"]++
	switch {
	case r.holdsUp(pod):
		r.Seen["leaders that held up an update"]++
	case pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] != "0" || !r.recorded[pod.UID]:
		r.Fail(ruleRecorded, "pod %s (%s)", pod.Name, pod.UID)
	case r.deleted[pod.UID] && r.calm() && r.faults.restarts == 0:
		r.Fail(ruleOnce, "pod %s (%s)", pod.Name, pod.UID)
	case !r.failed[pod.UID] && pod.DeletionTimestamp == nil: // another controller may have recorded that others delete it
		r.Fail(ruleCause, "no pod of the group of pod %s (%s) has failed, and nobody has asked for a restart", pod.Name, pod.UID)
	}
	r.deleted[pod.UID] = true
}

// holdsUp returns whether a leader is one that a rolling update has released, and that the StatefulSet controller may be unable to replace.
func (r *rules) holdsUp(pod *corev1.Pod) bool {
	sts := r.leaders()
	if sts == nil && r.observed != nil {
		sts = r.observed.Leader // it has gone since the decision
	}
	if sts == nil {
		return !r.recorded[pod.UID] && !r.calm() // a request that was made while there was one, and comes late
	}
	return metav1.IsControlledBy(pod, sts) && ordinalOf(pod) >= partitionOf(sts) && !r.recorded[pod.UID] &&
		pod.Labels[leaderworkersetv1.RevisionKey] != sts.Labels[leaderworkersetv1.RevisionKey]
}

// statusStored checks a status of the controller right before it is stored.
func (r *rules) statusStored(before, after *leaderworkersetv1.LeaderWorkerSet) {
	was := map[int32]leaderworkersetv1.GroupStatus{}
	for _, g := range before.Status.Groups {
		was[g.Index] = g
	}
	for _, g := range after.Status.Groups {
		r.groupStored(before, was[g.Index], g)
	}
	if b, a := &before.Status, &after.Status; a.ObservedGeneration < b.ObservedGeneration || a.ObservedGeneration > before.Generation {
		r.Fail(ruleMonotonic, "the observed generation goes from %d to %d of %d", b.ObservedGeneration, a.ObservedGeneration, before.Generation)
	}
	r.restartStored(before.Status.Restart, after.Status.Restart)
}

func (r *rules) groupStored(set *leaderworkersetv1.LeaderWorkerSet, was, is leaderworkersetv1.GroupStatus) {
	r.inStatus[is.RestartedLeader] = true
	switch rise := is.Restarts - was.Restarts; {
	case rise < 0 || rise > 1:
		r.Fail(ruleMonotonic, "the restarts of group %d go from %d to %d", is.Index, was.Restarts, is.Restarts)
	case rise == 1 && r.counted[is.RestartedLeader]:
		r.Fail(ruleCounted, "the restart of group %d because of %s counts twice", is.Index, is.RestartedLeader)
	case rise == 1:
		r.Seen["restarts that count"]++
		r.counted[is.RestartedLeader] = true
		if is.FirstCause == nil || is.LastRestartTime == nil && is.RestartAt == nil {
			r.Fail(ruleRecreated, "the restart of group %d has no cause or no time", is.Index)
		}
		if limit := set.Spec.LeaderWorkerTemplate.MaxGroupRestarts; limit != nil && is.Restarts > *limit {
			r.Fail(ruleLimit, "group %d is recreated %d times", is.Index, is.Restarts)
		}
	}
	if is.Failed {
		r.Seen["groups that have used up their restarts"]++
		return
	}
	r.recorded[is.RestartedLeader] = true
	if r.misdated(set, is.RestartedLeader) {
		r.Seen["groups younger than they look"]++
		r.failed[is.RestartedLeader] = true
	}
}

func (r *rules) restartStored(was, is *leaderworkersetv1.RequestedRestart) {
	if is != nil {
		for _, uid := range is.Leaders {
			r.recorded[uid], r.failed[uid] = true, true
		}
		return
	}
	if was == nil {
		return
	}
	r.Seen["requested restarts that ended"]++
	for _, pod := range r.pods.Objects {
		if sts := r.leaders(); sts != nil && metav1.IsControlledBy(pod, sts) && slices.Contains(was.Leaders, pod.UID) {
			r.Fail(ruleRequested, "pod %s (%s) is there", pod.Name, pod.UID)
		}
	}
}

// created checks a child right before it is stored.
func (r *rules) created(child metav1.Object) {
	switch o := child.(type) {
	case *appsv1.StatefulSet:
		r.workersCreated(o)
	case *appsv1.ControllerRevision:
		r.Seen["revisions created"]++
		if set := r.set(); set != nil && metav1.IsControlledBy(o, set) {
			r.named(set, o)
		}
		if n := len(r.env.revisions.Objects) + 1; n > maxRevisions {
			r.Fail(ruleBounded, "there are %d", n)
		}
	}
}

// named checks that a key has one template.
func (r *rules) named(set *leaderworkersetv1.LeaderWorkerSet, revision *appsv1.ControllerRevision) {
	restored, err := helper.Restore(set, revision.Data.Raw)
	if err != nil {
		return
	}
	key, image := revision.Labels[leaderworkersetv1.RevisionKey], restored.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image
	if before := r.images[key]; before != "" && before != image {
		r.Fail(ruleNames, "key %s is that of image %s, and revision %s has %s", key, before, revision.Name, image)
	}
	r.images[key] = image
}

func (r *rules) workersCreated(sts *appsv1.StatefulSet) {
	r.Seen["groups created"]++
	r.ledBy[sts.UID] = metav1.GetControllerOfNoCopy(sts).UID
	key := sts.Labels[leaderworkersetv1.RevisionKey]
	for _, pod := range r.pods.Objects {
		if !metav1.IsControlledBy(sts, pod) {
			continue
		}
		r.placed(sts, pod)
		if pod.Labels[leaderworkersetv1.RevisionKey] != key || sts.Spec.Template.Labels[leaderworkersetv1.RevisionKey] != key {
			r.Fail(ruleMixed, "statefulset %s is of revision %s, and its leader of %s", sts.Name, key, pod.Labels[leaderworkersetv1.RevisionKey])
		}
	}
	// Of a set that is being deleted with its revisions, nothing stays.
	if image := r.images[key]; r.leaders() != nil && image != "" && image != sts.Spec.Template.Spec.Containers[0].Image {
		r.Fail(ruleMixed, "statefulset %s of revision %s has image %s instead of %s", sts.Name, key, sts.Spec.Template.Spec.Containers[0].Image, image)
	}
}

// askedToRestart notes the leader pods that have to go.
func (r *rules) askedToRestart(group *int32) {
	for i := range 10 {
		if pod := r.leader(i); pod != nil && (group == nil || int(*group) == i) {
			r.requested[pod.UID] = true
		}
	}
}

// decided checks a decision. The reference is a copy of the snapshot, if there is one.
func (r *rules) decided(o plan.Observed, p plan.Plan, reference *plan.Observed) {
	if p.Status != nil {
		counted := committed(&o.Set.Status, p.Status)
		if slices.ContainsFunc(p.DeleteLeaders, func(d plan.Deletion) bool { return counted[d.UID] }) {
			r.Fail(ruleCommit, "%s", describePlan(p))
		}
	}
	r.heldUp(o, p)
	if reference == nil {
		return
	}
	if !reflect.DeepEqual(reference, &o) {
		r.Fail(ruleUntouched, "%s", describe(o))
	}
	slices.Reverse(reference.Leaders)
	slices.Reverse(reference.Workers)
	slices.Reverse(reference.Revisions)
	if again := r.decide(*reference); !reflect.DeepEqual(p, again) {
		r.Fail(ruleEqual, "%s, and then %s", describePlan(p), describePlan(again))
	}
}

// committed returns the leader pods for which a status has another restart than the one before.
func committed(was, is *leaderworkersetv1.LeaderWorkerSetStatus) map[types.UID]bool {
	restarts, counted := map[int32]int32{}, map[types.UID]bool{}
	for _, g := range was.Groups {
		restarts[g.Index] = g.Restarts
	}
	for _, g := range is.Groups {
		if g.Restarts > restarts[g.Index] {
			counted[g.RestartedLeader] = true
		}
	}
	return counted
}
