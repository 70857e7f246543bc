// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// LeaderWorkerSetPreview is what one LeaderWorkerSet would create, or change if it exists.
type LeaderWorkerSetPreview struct {
	Object
	// Groups, ReplicaSize and Pods are the numbers of replicas, of pods of a replica, and of all pods.
	Groups      int `json:"groups"`
	ReplicaSize int `json:"groupSize"`
	Pods        int `json:"pods"`
	// Children are the children of a new set. Names are patterns: w-[0-3] stands for w-0 to w-3.
	Children []ReplicaChild `json:"children,omitempty"`
	// LongestPodName is the longest name of a pod of a new set.
	LongestPodName string `json:"longestPodName,omitempty"`
	// Quota has one entry for each limit that the set counts towards.
	Quota []QuotaLine `json:"quota,omitempty"`
	// Update is what becomes of the replicas of a set that exists; nil if none is replaced, created or deleted.
	Update *LeaderWorkerSetUpdate `json:"update,omitempty"`
}

// ReplicaChild are children of one kind.
type ReplicaChild struct {
	Kind  string `json:"kind"`
	Names string `json:"names"`
	Count int    `json:"count"`
	// Taken reports that another object has the name of the first one. The set would wait until it is gone.
	Taken bool `json:"taken,omitempty"`
	// Verdict is the verdict of the cluster on the first one; nil if it was not asked.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// leaderWorkerSetPreviewer previews one LeaderWorkerSet.
type leaderWorkerSetPreviewer struct {
	*Session
	out LeaderWorkerSetPreview
	set *leaderworkersetv1.LeaderWorkerSet
	// leader and worker are the first pods, as the cluster would have them; nil if that is not known.
	leader, worker *corev1.Pod
}

// LeaderWorkerSet is the Previewer of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, s *Session, object *unstructured.Unstructured) (View, error) {
	p := &leaderWorkerSetPreviewer{Session: s, out: LeaderWorkerSetPreview{Object: objectOf(cli.LeaderWorkerSet, object)}}
	return &p.out, previewing[leaderworkersetv1.LeaderWorkerSet]{
		Session: s, kind: cli.LeaderWorkerSet, out: &p.out.Object, describeNew: p.describeNew, describeUpdate: p.describeUpdate,
	}.run(ctx, object)
}

// describeNew describes the children of a new set.
func (p *leaderWorkerSetPreviewer) describeNew(ctx context.Context, set *leaderworkersetv1.LeaderWorkerSet) error {
	p.set = set
	p.count()
	p.out.Notes = append(p.out.Notes, leaderWorkerSetNotes(p.set)...)
	if err := p.readQuotas(ctx, &p.out.Object); err != nil {
		return err
	}
	if err := p.askChildren(ctx); err != nil {
		return err
	}
	p.out.Quota = countQuota(p.quotas[p.out.Namespace], p.usage())
	return nil
}

// count fills in the numbers.
func (p *leaderWorkerSetPreviewer) count() {
	groups, size := int(helper.Replicas(p.set)), int(helper.Size(p.set))
	p.out.Groups, p.out.ReplicaSize, p.out.Pods = groups, size, groups*size
	switch {
	case groups > 0 && size > 1:
		p.out.LongestPodName = helper.WorkerPodName(p.set.Name, groups-1, size-1)
	case groups > 0:
		p.out.LongestPodName = helper.LeaderPodName(p.set.Name, groups-1)
	}
}

// leaderWorkerSetNotes say what the cluster does not say about the set.
func leaderWorkerSetNotes(set *leaderworkersetv1.LeaderWorkerSet) (notes []string) {
	if helper.Paused(set) {
		notes = append(notes, "rolling updates are paused: all groups are created, and later changes replace none before the set is resumed")
	}
	if set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady && helper.Size(set) > 1 {
		notes = append(notes, "the workers of a group are created once its leader is ready (startupPolicy LeaderReady)")
	}
	if key := set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]; key != "" {
		notes = append(notes, "each group needs a domain of its own: nodes with the same value of the label "+key+
			"; workers are created once their leader has a node")
	}
	return notes
}

// children are the first objects of each kind that the controller would create, from its own decisions.
func (p *leaderWorkerSetPreviewer) children() (leader, workers *appsv1.StatefulSet, services []*corev1.Service) {
	m := newLeaderWorkerSetModel(p.set)
	m.set.Spec.Replicas = ptr.To(min(helper.Replicas(p.set), 1))
	for range 5 {
		next := m.step()
		if next.ApplyLeader != nil {
			leader = next.ApplyLeader
		}
		services = append(services, next.CreateServices...)
		for i := range next.CreateWorkers {
			workers = next.CreateWorkers[i].StatefulSet
		}
		m.ready()
	}
	if leader != nil {
		leader = leader.DeepCopy()
		leader.Spec.Replicas = ptr.To(helper.Replicas(p.set))
	}
	return leader, workers, services
}

// firstPodOf is the first pod that the StatefulSet controller creates.
func firstPodOf(sts *appsv1.StatefulSet) *corev1.Pod {
	template := sts.Spec.Template.DeepCopy()
	first := int32(0)
	if o := sts.Spec.Ordinals; o != nil {
		first = o.Start
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", sts.Name, first), Namespace: sts.Namespace,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
		},
		Spec: template.Spec,
	}
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, sts.Spec.ServiceName
	return pod
}

// usage returns what the set adds, when all replicas run.
func (p *leaderWorkerSetPreviewer) usage() usage {
	u := usage{objects: corev1.ResourceList{}}
	u.count(1, "count/leaderworkersets."+leaderworkersetv1.GroupName)
	u.count(1, "count/controllerrevisions.apps")
	for i := range p.out.Children {
		switch c := &p.out.Children[i]; c.Kind {
		case statefulSetKind:
			u.count(int64(c.Count), "count/statefulsets.apps")
		case serviceKind:
			u.count(int64(c.Count), corev1.ResourceServices, "count/services")
		}
	}
	if p.leader != nil && p.out.Groups > 0 {
		u.pods = append(u.pods, podUsage{&p.leader.Spec, p.out.Groups})
	}
	if p.worker != nil && p.out.Groups > 0 {
		u.pods = append(u.pods, podUsage{&p.worker.Spec, p.out.Groups * (p.out.ReplicaSize - 1)})
	}
	for i := range p.set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates {
		u.countClaims(&p.set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates[i].Spec, int64(p.out.Pods))
	}
	return u
}

// Refused implements View.
func (s *LeaderWorkerSetPreview) Refused() bool {
	short := slices.ContainsFunc(s.Quota, func(line QuotaLine) bool { return line.Short != "" })
	return s.Verdict.Answer == Refused || short || slices.ContainsFunc(s.Children, func(c ReplicaChild) bool {
		return c.Taken ||
			c.Verdict.refused()
	})
}

// unknown reports whether not everything could be checked.
func (s *LeaderWorkerSetPreview) unknown() bool {
	return slices.ContainsFunc(s.Children, func(c ReplicaChild) bool { return c.Verdict != nil && c.Verdict.Answer == Unknown })
}

// templateField is the locator of pods of the template of the name.
func templateField(name string) locator {
	return func(field string) string {
		return strings.TrimSuffix("spec.leaderWorkerTemplate."+name+"."+strings.TrimPrefix(field, "spec.template."), ".")
	}
}
