// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds objects of others under the names of children, and children that have lost their owner.

const (
	ruleAdopted = "what nothing controls, and is made like a child, is adopted"
	ruleForeign = "workers of another group are not adopted"
	ruleVisible = "every refusal is visible within a minute"
)

// ofOthers is the label of objects that belong to others.
const ofOthers = "others"

// events are what was reported last, by reason and note.
type events struct{ env *env }

func (r events) Eventf(_, _ runtime.Object, eventType, reason, _, _ string, args ...any) {
	note, _ := args[0].(string)
	r.env.Note("  event %s: %s", reason, note)
	if eventType == corev1.EventTypeWarning && r.env.trouble.warned.IsZero() {
		r.env.trouble.warned = r.env.Now()
	}
	r.env.reported[reason+" "+note] = r.env.Now()
}

// reportedSince returns whether an event with the reason and a note that contains a text was reported since a time.
func (e *env) reportedSince(t time.Time, reason, text string) bool {
	for event, at := range e.reported {
		if strings.HasPrefix(event, reason+" ") && strings.Contains(event, text) && !at.Before(t) {
			return true
		}
	}
	return false
}

// disown removes the references of children to an owner, as the garbage collector does when the owner was deleted without its children.
func (e *env) disown(owner types.UID) {
	left := func(object metav1.Object) (refs []metav1.OwnerReference, changed bool) {
		refs = slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner })
		return refs, len(refs) != len(object.GetOwnerReferences())
	}
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		if refs, changed := left(sts); changed {
			next := sts.DeepCopy()
			next.OwnerReferences = refs
			e.statefulSets.Put(next)
		}
	}
	for _, service := range slices.Clone(e.services.Objects) {
		if refs, changed := left(service); changed {
			next := service.DeepCopy()
			next.OwnerReferences = refs
			e.services.Put(next)
		}
	}
	for _, revision := range slices.Clone(e.revisions.Objects) {
		if refs, changed := left(revision); changed {
			next := revision.DeepCopy()
			next.OwnerReferences = refs
			e.revisions.Put(next)
		}
	}
}

// orphanSet deletes the set without its children.
func (e *env) orphanSet(set *leaderworkersetv1.LeaderWorkerSet) {
	e.Note("user deletes the set without its children")
	e.Seen["deletions without children"]++
	e.sets.Remove(name)
	e.disown(set.UID)
	e.orphaned = true
	e.rules.lost, e.rules.unseen, e.rules.requested, e.rules.struck = map[types.UID]loss{}, map[types.UID]loss{}, map[types.UID]bool{}, map[types.UID]bool{}
}

// disownSome removes the owners of a StatefulSet of workers or of a Service, as a restore from a backup does.
func (e *env) disownSome() {
	if pod := e.somePod(); pod != nil && pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] == "0" && pod.DeletionTimestamp == nil {
		e.Note("the children of pod %s (%s) lose their owner", pod.Name, pod.UID)
		e.Seen["children that lost their owner"]++
		e.disown(pod.UID)
		return
	}
	e.deleteUnstarted()
}

// occupy lets a user create an object with the name of a child, if the name is free.
func (e *env) occupy() {
	group := helper.LeaderPodName(name, e.Dice.IntN(3))
	meta := metav1.ObjectMeta{Namespace: namespace, UID: e.NewUID("other"), CreationTimestamp: e.stored(), Labels: map[string]string{ofOthers: ""}}
	if e.Dice.Percent(50) {
		meta.Labels[leaderworkersetv1.SetNameLabelKey] = name
	}
	switch e.Dice.IntN(3) {
	case 0:
		meta.Name = simulation.OneOf(e.Dice, name, group)
		if _, found := e.services.Get(meta.Name); found {
			e.services.Remove(meta.Name)
		}
		e.services.Put(&corev1.Service{ObjectMeta: meta})
	case 1:
		meta.Name = simulation.OneOf(e.Dice, group, group, name)
		if _, found := e.statefulSets.Get(meta.Name); !found {
			e.statefulSets.Put(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0)}})
		} else {
			return
		}
	default:
		e.deleteUnstarted()
		return
	}
	e.Note("somebody creates an object %s of their own", meta.Name)
	e.Seen["names that others took"]++
}

// others returns the objects with a label of others, and whether the set needs their names.
func (e *env) others() (statefulSets, services []string) {
	for _, sts := range e.statefulSets.Objects {
		if _, other := sts.Labels[ofOthers]; other {
			statefulSets = append(statefulSets, sts.Name)
		}
	}
	for _, service := range e.services.Objects {
		if _, other := service.Labels[ofOthers]; other {
			services = append(services, service.Name)
		}
	}
	return statefulSets, services
}

// awaitReports lets others keep names for so long that they must be reported, and removes what is in the way of the
// set. It returns false if nothing was.
func (e *env) awaitReports(begin time.Time) bool {
	statefulSets, services := e.others()
	if len(statefulSets)+len(services) > 0 {
		if e.Since(begin) < 2*time.Minute {
			if e.process.worker.Due().IsZero() {
				e.Pass(30 * time.Second)
				return true
			}
			return false
		}
		e.checkReports(begin, statefulSets, services)
		for _, sts := range statefulSets {
			e.statefulSets.Remove(sts)
		}
		for _, service := range services {
			e.services.Remove(service)
		}
		e.Note("others give back the names %q and %q", statefulSets, services)
		return true
	}
	if e.Since(begin) < askedAgain && !e.process.worker.Due().IsZero() {
		return false // what was denied before may still be adopted
	}
	return e.removeStrays()
}

// askedAgain is the time after which what was denied has been asked for again.
const askedAgain = 3 * time.Minute

// checkReports checks that names which the set needs, and others have, are reported.
func (e *env) checkReports(begin time.Time, statefulSets, services []string) {
	set := e.set()
	if set == nil {
		return
	}
	report := func(kind, name string) {
		e.Seen["names of others that were reported"]++
		if !e.reportedSince(begin.Add(time.Minute), "FailedCreate", kind+" "+name) && !e.reportedSince(begin.Add(time.Minute), "FailedCreate", "pod "+name) {
			e.Fail(ruleVisible, "%s %s: %v", kind, name, e.reported)
		}
		if !e.troubled() {
			e.Fail(ruleVisible, "%s %s: no condition says that others have the name", kind, name)
		}
	}
	for _, sts := range statefulSets {
		if leader := e.leaderNamed(sts); sts == name || leader != nil && sizeOf(leader) > 1 && leader.DeletionTimestamp == nil && e.canHaveWorkers(set, leader) {
			report("statefulset", sts)
		}
	}
	for _, service := range services {
		unique := helper.UniquePerReplica(set.Spec.NetworkConfig)
		if leader := e.leaderNamed(service); !unique && service == name || unique && leader != nil && leader.DeletionTimestamp == nil {
			if other, _ := e.services.Get(service); labeled(other) {
				e.Seen["names of Services that others took with the label of the set"]++
			}
			report("service", service)
		}
	}
}

// troubled returns whether the stored set says that children cannot be created.
func (e *env) troubled() bool {
	set := e.set()
	return set != nil && meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionChildCreationFailure)
}

// canHaveWorkers returns whether nothing else keeps the workers of a leader from being created.
func (e *env) canHaveWorkers(set *leaderworkersetv1.LeaderWorkerSet, leader *corev1.Pod) bool {
	return (set.Spec.StartupPolicy != leaderworkersetv1.StartupPolicyLeaderReady || isReady(leader)) &&
		(set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey] == "" || leader.Spec.NodeName != "") &&
		slices.ContainsFunc(e.revisions.Objects, func(r *appsv1.ControllerRevision) bool {
			return r.Labels[leaderworkersetv1.RevisionKey] == leader.Labels[leaderworkersetv1.RevisionKey]
		})
}

// leaderNamed returns the leader pod of the stored set with a name; nil if there is none.
func (e *env) leaderNamed(name string) *corev1.Pod {
	pod, found := e.pods.Get(name)
	if sts := e.leaders(); !found || sts == nil || !metav1.IsControlledBy(pod, sts) {
		return nil
	}
	return pod
}

// removeStrays removes StatefulSets and Services that nothing controls and that belong to groups which are gone. Others
// must have been adopted.
func (e *env) removeStrays() (busy bool) {
	if e.set() == nil {
		return false
	}
	for _, sts := range slices.Clone(e.statefulSets.Objects) {
		if metav1.GetControllerOfNoCopy(sts) != nil || sts.DeletionTimestamp != nil {
			continue
		}
		leader := e.leaderNamed(sts.Name)
		if sts.Name == name || leader != nil && sizeOf(leader) > 1 && leader.DeletionTimestamp == nil && !sts.CreationTimestamp.Before(&leader.CreationTimestamp) &&
			leader.Labels[leaderworkersetv1.RevisionKey] == sts.Labels[leaderworkersetv1.RevisionKey] {
			e.Fail(ruleAdopted, "statefulset %s is not", sts.Name)
		}
		e.Note("somebody deletes statefulset %s (%s), which nothing controls", sts.Name, sts.UID)
		e.deleteStatefulSet(sts, false)
		busy = true
	}
	for _, service := range slices.Clone(e.services.Objects) {
		if metav1.GetControllerOfNoCopy(service) != nil {
			continue
		}
		if leader := e.leaderNamed(service.Name); service.Name == name || leader != nil && leader.DeletionTimestamp == nil {
			e.Fail(ruleAdopted, "service %s is not", service.Name)
		}
		e.services.Remove(service.Name)
		busy = true
	}
	return busy
}

// checkRevisionsAdopted checks that no revision is left without its owner.
func (e *env) checkRevisionsAdopted() {
	for _, revision := range e.revisions.Objects {
		if metav1.GetControllerOfNoCopy(revision) == nil {
			e.Fail(ruleAdopted, "revision %s is not", revision.Name)
		}
	}
}
