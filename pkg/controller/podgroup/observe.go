// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

const (
	// resourceGroups is the resource of PodReadinessGroups.
	resourceGroups = "podreadinessgroups"
	// indexGroup is the beginning of the name of the index of pods by their group.
	indexGroup = "group/"
	// ownersAge is how old the size of an owner may be while the group is not ready, and freshAge when it becomes ready.
	ownersAge, freshAge = 10 * time.Second, time.Second
	// groupTimeout bounds the read of a PodReadinessGroup, without which the cache decides.
	groupTimeout = 5 * time.Second
)

// podsOf names the pods of a prefix to the consistency store.
func podsOf(prefix plan.Prefix) string { return "pods/" + prefix.Name }

// snapshot is what was observed of a group of one prefix.
type snapshot struct {
	plan.Observed
	// prefix is the number of the prefix.
	prefix int
	// ownersRefused is what an API server answered when owners were to be read; empty if it refused nothing.
	ownersRefused string
}

// owner returns what requests for the group are made for: its PodReadinessGroup, or what stands for it if there is none.
func (s *snapshot) owner(key cache.ObjectName) metav1.Object {
	if s.Group != nil {
		return s.Group
	}
	return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}

// first returns the first pod by name.
func (s *snapshot) first() (first plan.Ref) {
	for _, pod := range s.Pods {
		if first.Name == "" || pod.Name < first.Name {
			first = plan.Ref{Name: pod.Name, UID: pod.UID}
		}
	}
	return first
}

// observe returns the groups of the name, one for each prefix that has pods. The PodReadinessGroup of the name shows the first of them,
// and none if no pod exists.
func (s *Syncer) observe(key cache.ObjectName) ([]*snapshot, error) {
	group, err := s.Caches.Group(key)
	if err != nil {
		return nil, err
	}
	unknown := group != nil && unreadable.Is(group)
	if unknown {
		group = nil // what is left of it says nothing
	}
	now := s.Clock.Now()
	var found []*snapshot
	for i, prefix := range plan.Prefixes {
		pods, err := s.Caches.Pods(i, key)
		if err != nil {
			return nil, fmt.Errorf("listing pods of group %s: %w", key, err)
		}
		if len(pods) == 0 {
			continue
		}
		obs := &snapshot{prefix: i, Observed: plan.Observed{Prefix: prefix, Pods: make([]*plan.Pod, len(pods))}}
		for i, pod := range pods {
			obs.Pods[i] = &pod.Pod
		}
		found = append(found, obs)
	}
	if len(found) == 0 {
		if group == nil {
			s.forget(key)
			return nil, nil
		}
		found = []*snapshot{{Observed: plan.Observed{Prefix: plan.Prefixes[0]}}}
	}
	for i, obs := range found {
		obs.Group, obs.GroupUnknown, obs.Now, obs.ShowStatus = group, unknown, now, i == 0
		obs.LastNew, obs.Written = s.memory.times(key, obs.prefix, now)
		obs.LabelProblem = s.memory.refusals(key, obs.prefix).problem(obs.Prefix)
	}
	return found, nil
}

// forget drops everything about a group that is gone.
func (s *Syncer) forget(key cache.ObjectName) {
	s.memory.forget(key)
	s.Runner.Forget(key)
}

// decide decides what to do about the group. Before a group becomes ready, what may have changed is read again. The
// error says which owners could not be read.
func (s *Syncer) decide(ctx context.Context, key cache.ObjectName, obs *snapshot) (plan.Plan, error) {
	p, err := s.decideCached(ctx, key, obs)
	if len(p.Label) == 0 || p.Labeled > 0 || !s.refreshGroup(ctx, key, obs) {
		return p, err
	}
	return s.decideCached(ctx, key, obs)
}

// refreshGroup reads the PodReadinessGroup, and returns whether the cache did not show it as it is. Pods come from
// another API server, whose watch may be ahead of that of groups: a group that was created just before its pods would
// not count. While it cannot be read, none can be created either, and the cache decides.
func (s *Syncer) refreshGroup(ctx context.Context, key cache.ObjectName, obs *snapshot) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	group, err := s.Groups(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch cached := obs.Group; {
	case apierrors.IsNotFound(err) && cached != nil:
		obs.Group = nil
	case err == nil && (cached == nil || cached.UID != group.UID || cached.Generation != group.Generation):
		trim(group)
		obs.Group = group
	default:
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).V(2).Info("Could not read a PodReadinessGroup before its pods are labeled; the cache decides", "err", err)
		}
		return false
	}
	return true
}

// decideCached asks owners for their sizes if these decide. Before a group becomes ready, sizes that may have changed are read again.
func (s *Syncer) decideCached(ctx context.Context, key cache.ObjectName, obs *snapshot) (plan.Plan, error) {
	owners := plan.Needs(obs.Observed)
	if len(owners) == 0 {
		return plan.Decide(obs.Observed), nil
	}
	group := members.Group{Namespace: key.Namespace, Name: key.Name, Prefix: obs.Prefix}
	var p plan.Plan
	for _, age := range []time.Duration{ownersAge, freshAge} {
		sizes, err := s.Sizes.Read(ctx, group, owners, age)
		if obs.Owners = sizes; err != nil {
			if obs.OwnersError = s.memory.owners(key, obs.prefix, err); answered(err) {
				obs.ownersRefused = obs.OwnersError
			}
			return plan.Decide(obs.Observed), err
		}
		if p = plan.Decide(obs.Observed); len(p.Label) == 0 {
			break
		}
	}
	s.memory.owners(key, obs.prefix, nil)
	return p, nil
}

// transformGroup drops what no decision uses.
func transformGroup(obj any) (any, error) {
	if group, ok := obj.(*batchv1alpha1.PodReadinessGroup); ok {
		trim(group)
	}
	return obj, nil
}

func trim(group *batchv1alpha1.PodReadinessGroup) {
	group.ManagedFields = nil
	delete(group.Annotations, corev1.LastAppliedConfigAnnotation)
}
