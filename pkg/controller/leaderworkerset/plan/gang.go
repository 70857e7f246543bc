// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// mark has the webhook of pods name the PodGroup in the pods of a template, which differs from group to group.
func mark(g GangProvider, template *corev1.PodTemplateSpec) {
	value := leaderworkersetv1.GangKubernetes
	switch g {
	case "":
		return
	case GangVolcano:
		value = leaderworkersetv1.GangVolcano
	case GangCoscheduling:
		value = leaderworkersetv1.GangCoscheduling
	}
	template.Annotations = hostplan.Merged(template.Annotations, map[string]string{leaderworkersetv1.GangAnnotationKey: value})
}

// createPodGroups creates the PodGroups that groups lack. A PodGroup belongs to one leader pod, and goes with it.
func createPodGroups(s *snapshot) (p Plan) {
	if s.Gang == "" {
		return p
	}
	exists, revisions := byName(s.PodGroups), newRevisions(s)
	var due []*group
	for i := range s.groups {
		switch g := &s.groups[i]; {
		case g.leader.Deleting, exists.has(podGroupName(s.Gang, s.Set, g), g.leader.UID):
			// That of the leader before has the same name, if it is of the same revision, until it is gone.
		case revisions.setAt(g.leader.Revision) == nil:
			p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, revisions.due(g.leader.Revision))
		default:
			due = append(due, g)
		}
	}
	due, p.More = fullPlan(s.Now, due, maxGroupWrites)
	for _, g := range due {
		p.CreatePodGroups = append(p.CreatePodGroups, podGroup(s.Gang, revisions.setAt(g.leader.Revision), g))
	}
	return p
}

func podGroupName(gang GangProvider, set *leaderworkersetv1.LeaderWorkerSet, g *group) string {
	name := helper.PodGroupName(set.Name, groupLabel(g), g.leader.Revision)
	if gang == GangCoscheduling {
		return helper.CoschedulingName(name)
	}
	return name
}

// podGroup returns the PodGroup of a group. set has the spec of the leader pod's revision, and its current metadata.
func podGroup(gang GangProvider, set *leaderworkersetv1.LeaderWorkerSet, g *group) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(gang.Resource().GroupVersion().WithKind("PodGroup"))
	out.SetName(podGroupName(gang, set, g))
	out.SetNamespace(set.Namespace)
	out.SetLabels(map[string]string{
		leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.RevisionKey: g.leader.Revision,
		leaderworkersetv1.GroupIndexLabelKey: strconv.Itoa(int(groupLabel(g))),
	})
	out.SetOwnerReferences([]metav1.OwnerReference{leaderReference(g.leader)})
	if !gang.OwnKind() {
		out.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": members(set)}}}
		return out
	}
	gang.SetSpec(out, set, members(set), minResources(set))
	return out
}

// members returns how many pods of a group have to be scheduled together. Workers that are created once the leader is
// ready cannot be among them.
func members(set *leaderworkersetv1.LeaderWorkerSet) int64 {
	if set.Spec.StartupPolicy == leaderworkersetv1.StartupPolicyLeaderReady {
		return 1
	}
	return int64(helper.Size(set))
}

// minResources returns what all pods of a group request together.
func minResources(set *leaderworkersetv1.LeaderWorkerSet) map[string]any {
	return gangplan.MinResources(gangplan.Pods{Template: helper.LeaderTemplate(set), Number: 1},
		gangplan.Pods{Template: &set.Spec.LeaderWorkerTemplate.WorkerTemplate, Number: int64(helper.Size(set) - 1)})
}
