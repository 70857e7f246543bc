// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// newSyncer returns the real Syncer with the caches and the clients of a simulated process.
func newSyncer(p *process) *leaderworkerset.Syncer {
	return leaderworkerset.NewSyncer(leaderworkerset.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{}, Consistency: p.memory, Clock: p, Denials: p.Denials(p.hurried), Shuffle: p.Dice.Perm},
		Caches: caches{p}, Recorder: events{p.env}, Gang: p.gang, ServedSince: p.servedFrom,
		Clients: leaderworkerset.Clients{
			Sets: func(string) children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet] { return setClient{p} },
			StatefulSets: func(string) children.Client[*appsv1.StatefulSet] {
				return childClient[*appsv1.StatefulSet]{p, &p.env.statefulSets, "statefulset", (*appsv1.StatefulSet).DeepCopy}
			},
			Pods: func(string) children.Client[*corev1.Pod] {
				return childClient[*corev1.Pod]{p, &p.env.pods, "pod", (*corev1.Pod).DeepCopy}
			},
			Services: func(string) children.Client[*corev1.Service] {
				return childClient[*corev1.Service]{p, &p.env.services, "service", (*corev1.Service).DeepCopy}
			},
			Revisions: func(string) children.Client[*appsv1.ControllerRevision] {
				return childClient[*appsv1.ControllerRevision]{p, &p.env.revisions, "revision", (*appsv1.ControllerRevision).DeepCopy}
			},
			PodGroups: func(string) children.Client[*unstructured.Unstructured] {
				return childClient[*unstructured.Unstructured]{p, &p.env.podGroups, "podgroup", (*unstructured.Unstructured).DeepCopy}
			},
			Leaders: p.readLeaders,
		},
	})
}

// servedFrom is since when the process has seen the server of the set without an interruption.
func (p *process) servedFrom() time.Time {
	switch {
	case p.outage:
		return time.Time{}
	case p.servedSince.After(p.startedAt):
		return p.servedSince
	}
	return p.startedAt
}

// caches are the caches of a process.
type caches struct{ p *process }

func (c caches) Set(cache.ObjectName) (*leaderworkersetv1.LeaderWorkerSet, error) {
	set, found := c.p.sets.Get(name)
	if found && c.p.credulous {
		set = simulation.Believed(set)
		leaderworkersetv1.SetObjectDefaults_LeaderWorkerSet(set)
	}
	return set, nil
}

func (c caches) Leader(set *leaderworkersetv1.LeaderWorkerSet) (*appsv1.StatefulSet, bool, error) {
	sts, found := c.p.statefulSets.Get(set.Name)
	switch {
	case !found, !labeled(sts):
		return nil, false, nil
	case !metav1.IsControlledBy(sts, set):
		return nil, true, nil
	}
	return sts, false, nil
}

func (c caches) LeaderKey(leader *appsv1.StatefulSet) (string, bool) {
	template, found := c.p.templates[leader.UID][leader.Status.CurrentRevision]
	if !found {
		return "", false
	}
	return template.Labels[leaderworkersetv1.RevisionKey], true
}

func (c caches) Workers(cache.ObjectName) (all []plan.Workers, err error) {
	for _, sts := range c.p.statefulSets.Objects {
		if owner := metav1.GetControllerOfNoCopy(sts); owner != nil && owner.Kind == "Pod" {
			workers := plan.WorkersOf(sts)
			if !c.p.blind {
				c.p.losses.Fill(&workers)
			}
			all = append(all, workers)
		}
	}
	return all, nil
}

func (c caches) Pods(controller types.UID) (all []plan.Pod, err error) {
	for _, pod := range c.p.pods.Objects {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.UID == controller {
			all = append(all, plan.PodOf(pod))
		}
	}
	return all, nil
}

func (caches) PodRefusal(types.UID, bool) *hostplan.Refusal { return nil }

func (caches) FirstFailure(types.UID) *helper.PodFailure { return nil }

func (c caches) Services(cache.ObjectName) ([]leaderworkerset.Child, error) {
	return childrenOf(c.p.services.Objects), nil
}

func (c caches) PodGroups(cache.ObjectName) ([]leaderworkerset.Child, error) {
	return childrenOf(c.p.podGroups.Objects), nil
}

func (c caches) Orphans(cache.ObjectName) (all []plan.Orphan, err error) {
	all = orphansOf(all, c.p.statefulSets.Objects)
	all = orphansOf(all, c.p.services.Objects)
	return orphansOf(all, c.p.revisions.Objects), nil
}

func orphansOf[T metav1.Object](all []plan.Orphan, objects []T) []plan.Orphan {
	for _, object := range objects {
		if orphan := plan.OrphanOf(object); orphan != nil {
			all = append(all, *orphan)
		}
	}
	return all
}

func (c caches) Domain(node, label string) (string, bool) {
	if label != domainKey || c.p.unlabeled[node] {
		return "", false
	}
	return domainOf(node), true
}

// labeled returns whether an object has the label of the set: the watches of the controller show no others.
func labeled(object metav1.Object) bool {
	_, other := object.GetLabels()[ofOthers]
	return !other || object.GetLabels()[leaderworkersetv1.SetNameLabelKey] != ""
}

func childrenOf[T metav1.Object](objects []T) (all []leaderworkerset.Child) {
	for _, obj := range objects {
		if !labeled(obj) {
			continue
		}
		all = append(all, plan.ChildOf(obj))
	}
	return all
}

func (c caches) Revisions(cache.ObjectName) ([]*appsv1.ControllerRevision, error) {
	return append([]*appsv1.ControllerRevision(nil), c.p.revisions.Objects...), nil
}

// podChanged counts lost pods as the handlers of the controller do.
func (p *process) podChanged(pod *corev1.Pod, gone bool) {
	p.worker.Add(name)
	view := plan.PodOf(pod)
	if view.Index == 0 && gone {
		p.syncer.LeaderGone(key, view)
		if !p.rivals {
			p.rules.leaderShownGone(pod)
		}
	}
	if view.Index <= 0 {
		return
	}
	if !gone {
		deleting, shown := p.known[view.UID]
		switch p.known[view.UID] = view.Deleting; {
		case !shown:
			p.losses.Added(view.Controller, sizeOf(pod)-1, !view.Deleting, p.syncer == nil)
		case view.Deleting && !deleting:
			p.losses.Deleting(view.Controller)
		}
		return
	}
	deleting := p.known[view.UID]
	delete(p.known, view.UID)
	workers, found := p.statefulSets.Get(view.LeaderName)
	found = found && workers.UID == view.Controller
	leader, led := p.pods.Get(view.LeaderName)
	stays := led && leader.DeletionTimestamp == nil && (!found || staysWith(workers, leader))
	p.losses.Gone(view.Controller, leaderworkerset.GonePod{
		LostPod: plan.LostPod{Name: view.Name, Node: view.Node}, Deleting: deleting, Started: p.everStarted || view.Phase != corev1.PodPending,
	}, found, stays)
	if !p.rivals {
		p.rules.lossShown(pod)
	}
}

// staysWith returns whether a StatefulSet of workers stays with a leader, as the handlers of the controller find it out.
func staysWith(workers *appsv1.StatefulSet, leader *corev1.Pod) bool {
	if orphan := plan.OrphanOf(workers); orphan != nil {
		view := plan.PodOf(leader)
		return orphan.LedBy(&view)
	}
	return metav1.IsControlledBy(workers, leader) && workers.DeletionTimestamp == nil
}

// readLeaders returns the leader pods as they are stored.
func (p *process) readLeaders(context.Context, cache.ObjectName) ([]leaderworkerset.Child, error) {
	return simulation.Read(p.sender, func() ([]leaderworkerset.Child, error) {
		var leaders []*corev1.Pod
		for _, pod := range p.env.pods.Objects {
			if pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] == "0" {
				leaders = append(leaders, pod)
			}
		}
		return childrenOf(leaders), nil
	})
}
