// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// step does one pass, and returns whether it wrote anything.
func (w *world) step() bool {
	w.t.Helper()
	o := w.observe()
	p := decide(w.t, o)
	var r Results
	wrote := p.Status != nil || len(p.DeleteLeaders) > 0 || len(p.DeleteRevisions) > 0 || len(p.CreateServices) > 0 || p.CreateRevision != nil
	if p.CreateRevision != nil {
		created := p.CreateRevision.DeepCopy()
		created.UID = w.uid()
		for _, r := range w.revisions {
			if r.Name == created.Name {
				w.t.Fatalf("revision %s is created twice", r.Name)
			}
		}
		w.revisions = append(w.revisions, created)
	}
	if p.ApplyLeader != nil {
		wrote = w.apply(p.ApplyLeader, &r) || wrote
	}
	for _, s := range p.CreateServices {
		w.services = append(w.services, Child{Ref: Ref{Name: s.Name, UID: w.uid()}, Controller: s.OwnerReferences[0].UID})
	}
	for i, d := range p.DeleteLeaders {
		_, index := helper.ParentAndOrdinal(d.Name)
		if pod := w.pods[index]; pod != nil && pod.uid == d.UID && !pod.deleting {
			pod.deleting, pod.taken = true, pod.taken || pod.ready && index < helper.Replicas(w.set)
			pod.fail(w.now)
			r.DeletedLeaders = append(r.DeletedLeaders, i)
		}
	}
	for _, d := range p.DeleteRevisions {
		w.revisions = slices.DeleteFunc(slices.Clone(w.revisions), func(r *appsv1.ControllerRevision) bool { return r.UID == d.UID })
	}
	out := Finish(o, p, r)
	if out.Status != nil {
		w.set = w.set.DeepCopy()
		w.set.Status = *out.Status
	}
	for _, e := range append(out.Events, out.Others...) {
		w.events = append(w.events, strings.Join([]string{e.Type, e.Reason, e.Action, e.Note}, "|"))
	}
	return wrote
}

// apply is the API server: defaults are filled in, and what it refuses changes nothing.
func (w *world) apply(sts *appsv1.StatefulSet, r *Results) bool {
	if w.refuse != nil {
		if why := w.refuse(sts); why != "" {
			r.LeaderError = why
			return false
		}
	}
	r.LeaderApplied = true
	next := sts.DeepCopy()
	next.UID, next.Generation = "leader", 1
	next.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	next.Spec.RevisionHistoryLimit = ptr.To[int32](10)
	if w.leader == nil {
		w.current = key(next)
	} else {
		next.Status, next.Generation = w.leader.Status, w.leader.Generation+1
		up := partitionOf(next) > partitionOf(w.leader) && key(next) == key(w.leader)
		if up && partitionOf(next) != helper.Partition(w.set) && !helper.Paused(w.set) {
			w.ups++
		}
	}
	target := fmt.Sprintf("(%d,%d)", partitionOf(next), *next.Spec.Replicas)
	if len(w.targets) == 0 || w.targets[len(w.targets)-1] != target {
		w.targets = append(w.targets, target)
	}
	if w.counting == countOne {
		next.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
	changed := w.leader == nil || !holds(w.leader, next) || w.applied != ApplyHash(sts)
	w.leader, w.applied, w.generation = next, ApplyHash(sts), next.Generation
	return changed
}

func key(sts *appsv1.StatefulSet) string { return sts.Labels[leaderworkersetv1.RevisionKey] }

// statefulSetController does one round of the StatefulSet controller, and returns whether it did anything.
func (w *world) statefulSetController() (acted bool) {
	if w.leader == nil {
		return false
	}
	n, lowest, update := *w.leader.Spec.Replicas, partitionOf(w.leader), w.leader.Spec.Template.Labels[leaderworkersetv1.RevisionKey]
	for i, p := range w.pods {
		if p.deleting || i >= n {
			delete(w.pods, i)
			w.taken[i] = p.taken
			acted = true
		}
	}
	for i := range n {
		if w.pods[i] == nil && !w.frozen {
			k := w.current
			if i >= lowest {
				k = update
			}
			w.pods[i] = &worldPod{uid: w.uid(), key: k, since: w.now, taken: w.taken[i], lacksWorkers: w.sizeOf(k) == 1}
			acted = true
		}
	}
	clear(w.taken)
	if !w.frozen {
		acted = w.replace(n, lowest, update) || acted
	}
	done := true
	for _, p := range w.pods {
		done = done && p.key == update && p.ready
	}
	if done {
		w.current = update
	}
	acted = acted || w.leader.Status.Replicas != int32(len(w.pods)) || w.leader.Status.ObservedGeneration != w.leader.Generation
	w.leader = w.leader.DeepCopy()
	w.leader.Status.Replicas, w.leader.Status.ObservedGeneration = int32(len(w.pods)), w.leader.Generation
	return acted
}

// sizeOf returns the size of the groups of a revision.
func (w *world) sizeOf(key string) int32 {
	if r := newest(w.revisions, key); r != nil {
		if n, err := helper.SizeOfRevision(r.Data.Raw); err == nil {
			return n
		}
	}
	return helper.Size(w.set)
}

// replace deletes pods of other revisions.
func (w *world) replace(n, lowest int32, update string) (acted bool) {
	limit := int32(1)
	if w.counting == countAll {
		limit = w.leader.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntVal
		for _, p := range w.pods {
			if !p.ready {
				limit--
			}
		}
	}
	for i := n - 1; i >= lowest && limit > 0; i-- {
		p := w.pods[i]
		switch {
		case p.key != update:
			p.taken = p.taken || p.ready && i < helper.Replicas(w.set)
			p.deleting, acted = true, true
			p.fail(w.now)
			limit--
		case w.counting == countOne && !p.ready:
			return acted
		}
	}
	return acted
}
