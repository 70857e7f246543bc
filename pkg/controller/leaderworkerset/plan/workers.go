// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// maxGroupWrites is how many StatefulSets of workers, PodGroups, deletions of leaders and touches one plan has at most, each.
	maxGroupWrites = 100
	// revisionAfter is when to look again for the revision of new leader pods: later and later, at most every
	// revisionLost. One that is missing for that long is lost.
	revisionAfter, revisionLost = 2 * time.Second, 30 * time.Second
	// domainAfter is when to look again for the label of the node of a leader pod.
	domainAfter = 10 * time.Second
)

// createWorkers creates the StatefulSets of workers that groups lack. They are created only, and never changed: a group
// gets other workers when its leader is replaced.
func createWorkers(s *snapshot) (p Plan) {
	taken, revisions := namesOfOthers(s.Observed), newRevisions(s)
	var due []*group
	for i := range s.groups {
		g := &s.groups[i]
		if g.workers != nil || g.size == 1 || g.leader.Deleting {
			continue
		}
		// Those that wait for something are left out before the plan is full, so that they take no room in it.
		if part, wait := workersWait(s, g, taken, revisions); wait {
			p.add(part)
			continue
		}
		due = append(due, g)
	}
	due, p.More = fullPlan(s.Now, due, maxGroupWrites)
	for _, g := range due {
		sts := workerStatefulSet(revisions.setAt(g.leader.Revision), g)
		mark(s.Gang, &sts.Spec.Template)
		place(s, g, sts)
		p.CreateWorkers = append(p.CreateWorkers, NewWorkers{StatefulSet: sts, Event: Event{
			Type: corev1.EventTypeNormal, Reason: leaderworkersetv1.ReasonGroupsProgressing, Action: ActionCreate,
			Note: "Created worker statefulset for leader pod " + g.leader.Name, Related: g.leader.Name,
		}})
	}
	return p
}

// workersWait returns whether the workers of a group have to wait for something, and the part of the plan about that.
func workersWait(s *snapshot, g *group, taken map[string]bool, revisions *revisions) (p Plan, wait bool) {
	switch {
	case g.leader.LeaderName != "":
		return Plan{Notices: []Event{recursion(g)}}, true
	case s.Set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady && !g.leader.Ready:
		return Plan{}, true
	case taken[g.leader.Name]:
		return Plan{}, true // the workers of the leader before this one have the name until they are gone
	case revisions.setAt(g.leader.Revision) == nil:
		return awaitRevision(s, g, revisions), true
	}
	return awaitDomain(s, g)
}

// namesOfOthers returns the names of StatefulSets that leader pods control which are gone.
func namesOfOthers(o Observed) map[string]bool {
	alive := leadersByUID(o)
	out := map[string]bool{}
	for i := range o.Workers {
		if w := &o.Workers[i]; alive[w.Leader] == nil || alive[w.Leader].Name != w.Name {
			out[w.Name] = true
		}
	}
	return out
}

// recursion is the event about a leader pod that a StatefulSet of workers has created.
func recursion(g *group) Event {
	return Event{
		Type: corev1.EventTypeWarning, Reason: reasonFailedCreate, Action: ActionCreate, Related: g.leader.Name,
		Note: fmt.Sprintf("Failed to create worker statefulset for leader pod %s: it has the annotation %s, which only worker pods have. "+
			"Worker StatefulSets start at ordinal 1, which needs Kubernetes 1.27 or later, or 1.26 with the feature gate StatefulSetStartOrdinal",
			g.leader.Name, leaderworkersetv1.LeaderPodNameAnnotationKey),
	}
}

// awaitRevision has another look at the revision of a leader pod, which caches may show later than the pod, and reports
// one that does not come.
func awaitRevision(s *snapshot, g *group, revisions *revisions) Plan {
	p := Plan{RequeueAfter: revisions.due(g.leader.Revision)}
	if s.Now.Sub(g.leader.Created.Time) >= revisionLost {
		p.Notices = []Event{{
			Type: corev1.EventTypeWarning, Reason: reasonFailedCreate, Action: ActionCreate, Related: g.leader.Name,
			Note: fmt.Sprintf("Failed to create worker statefulset for leader pod %s: no ControllerRevision of the LeaderWorkerSet has the key %q "+
				"of the pod, or it cannot be read. %s", g.leader.Name, g.leader.Revision, wayOut(s, g)),
		}}
	}
	return p
}

// wayOut returns what recreates a group of a revision that is lost. A leader pod that is deleted comes back at the same
// revision as long as it is below a partition, or as the leader StatefulSet is of that revision itself.
func wayOut(s *snapshot, g *group) string {
	kept := s.Leader != nil && (g.index < partitionOf(s.Leader) || s.Leader.Labels[leaderworkersetv1.RevisionKey] == g.leader.Revision)
	switch {
	case g.index < helper.Partition(s.Set):
		return fmt.Sprintf("Lower spec.rolloutStrategy.rollingUpdateConfiguration.partition to %d to recreate the group at the current revision",
			g.index)
	case kept && helper.Paused(s.Set):
		return "Set spec.paused to false to recreate the group at the current revision"
	case kept:
		return "The rolling update recreates the group at the current revision"
	}
	return "Delete the pod to recreate the group"
}

// fullPlan returns the first groups that one plan has room for, and whether there are more. If there are, those that are refused again and
// again do not keep others from their turn: where it begins follows from the time.
func fullPlan(now metav1.Time, groups []*group, room int) (first []*group, more bool) {
	n := len(groups)
	if n <= room {
		return groups, false
	}
	begin := int(now.Unix() * int64(room) % int64(n))
	first = make([]*group, 0, room)
	for i := range room {
		first = append(first, groups[(max(0, begin)+i)%n])
	}
	return first, true
}

// workerStatefulSet returns the StatefulSet of the workers of a group. set has the spec of the leader pod's revision,
// and its current metadata.
func workerStatefulSet(set *leaderworkersetv1.LeaderWorkerSet, g *group) *appsv1.StatefulSet {
	leader := g.leader
	identity := map[string]string{
		leaderworkersetv1.SetNameLabelKey:    set.Name,
		leaderworkersetv1.GroupIndexLabelKey: strconv.Itoa(int(groupLabel(g))),
		leaderworkersetv1.GroupKeyLabelKey:   helper.GroupKey(set.Namespace, leader.Name),
	}
	labels := hostplan.Merged(identity, map[string]string{leaderworkersetv1.RevisionKey: leader.Revision})
	template := *set.Spec.LeaderWorkerTemplate.WorkerTemplate.DeepCopy()
	template.Labels = hostplan.Merged(template.Labels, labels)
	template.Annotations = hostplan.Merged(template.Annotations, groupAnnotations(set))
	template.Annotations[leaderworkersetv1.LeaderPodNameAnnotationKey] = leader.Name
	if leader.RequestsTPUs {
		template.Annotations[leaderworkersetv1.LeaderRequestsTPUsAnnotationKey] = "true"
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: leader.Name, Namespace: set.Namespace,
			Labels: hostplan.Merged(set.Labels, labels), Annotations: hostplan.Merged(set.Annotations),
			OwnerReferences: []metav1.OwnerReference{leaderReference(leader)},
		},
		Spec: appsv1.StatefulSetSpec{
			ServiceName:                          helper.Subdomain(set.Spec.NetworkConfig, set.Name, leader.Name),
			Replicas:                             ptr.To(helper.Size(set) - 1),
			Ordinals:                             &appsv1.StatefulSetOrdinals{Start: 1},
			PodManagementPolicy:                  appsv1.ParallelPodManagement,
			Selector:                             &metav1.LabelSelector{MatchLabels: identity},
			Template:                             template,
			VolumeClaimTemplates:                 claimTemplates(set),
			PersistentVolumeClaimRetentionPolicy: set.Spec.LeaderWorkerTemplate.PersistentVolumeClaimRetentionPolicy.DeepCopy(),
		},
	}
}

// awaitDomain returns whether it is not known yet to which domain the workers of a group are restricted, and the part of the plan about
// that.
func awaitDomain(s *snapshot, g *group) (p Plan, wait bool) {
	key, exclusive := s.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
	_, known := s.Domains[g.leader.Node]
	switch {
	case !exclusive, g.leader.Node != "" && known:
		return p, false
	case g.leader.Node != "":
		p.RequeueAfter = domainAfter
		p.Notices = []Event{{
			Type: corev1.EventTypeWarning, Reason: reasonFailedCreate, Action: ActionCreate, Related: g.leader.Name,
			Note: fmt.Sprintf("Failed to create worker statefulset for leader pod %s: its node %s must have the label %q of the annotation %s",
				g.leader.Name, g.leader.Node, key, leaderworkersetv1.ExclusiveKeyAnnotationKey),
		}}
	}
	return p, true
}

// place restricts workers to the domain of their leader if the set asks for exclusive placement.
func place(s *snapshot, g *group, sts *appsv1.StatefulSet) {
	if key, exclusive := s.Set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]; exclusive {
		pod := &sts.Spec.Template.Spec
		pod.NodeSelector = hostplan.Merged(pod.NodeSelector, map[string]string{key: s.Domains[g.leader.Node]})
	}
}

// revisions are sets at the revisions of leader pods.
type revisions struct {
	*snapshot
	sets map[string]*leaderworkersetv1.LeaderWorkerSet
	// since is when the first leader pod of each revision was created; nil before it is asked for.
	since map[string]time.Time
}

func newRevisions(s *snapshot) *revisions {
	return &revisions{snapshot: s, sets: map[string]*leaderworkersetv1.LeaderWorkerSet{}}
}

// due returns when to look again for a revision that is missing: after twice as long as its first leader pod has been there. By a clock of
// kube-apiserver that is ahead it is not there yet.
func (r *revisions) due(key string) time.Duration {
	if r.since == nil {
		r.since = map[string]time.Time{}
		for i := range r.groups {
			leader := r.groups[i].leader
			if first, known := r.since[leader.Revision]; !known || leader.Created.Time.Before(first) {
				r.since[leader.Revision] = leader.Created.Time
			}
		}
	}
	age := r.Now.Sub(r.since[key])
	if age < 0 {
		return revisionLost / 2
	}
	return max(revisionAfter, min(2*age, revisionLost))
}

// setAt returns the set at a revision; nil if that is unknown or cannot be read.
func (r *revisions) setAt(key string) *leaderworkersetv1.LeaderWorkerSet {
	if key == r.rev.key {
		return r.Set
	}
	if set, known := r.sets[key]; known {
		return set
	}
	var set *leaderworkersetv1.LeaderWorkerSet
	if stored := newest(r.Revisions, key); stored != nil {
		if restored, err := helper.Restore(r.Set, stored.Data.Raw); err == nil {
			set = restored
		}
	}
	r.sets[key] = set
	return set
}
