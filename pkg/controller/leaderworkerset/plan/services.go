// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// createServices creates the headless Services that are missing: one for the set, or one for each group. Those of
// another policy stay as long as their owner.
func createServices(s *snapshot) (p Plan) {
	all := byName(s.Services)
	exists := func(name string, controller types.UID) bool {
		return all.has(name, controller) || slices.ContainsFunc(s.Orphans, func(orphan Orphan) bool {
			return orphan.Kind == OrphanService && orphan.Name == name // it is about to be adopted
		})
	}
	if !helper.UniquePerReplica(s.Set.Spec.NetworkConfig) {
		if !exists(s.Set.Name, s.Set.UID) {
			p.CreateServices = append(p.CreateServices, headlessService(s.Set, s.Set.Name, *metav1.NewControllerRef(s.Set, setKind), nil))
		}
		return p
	}
	var lacking []*group
	for i := range s.groups {
		if leader := s.groups[i].leader; !leader.Deleting && !exists(leader.Name, leader.UID) {
			lacking = append(lacking, &s.groups[i])
		}
	}
	lacking, p.More = fullPlan(s.Now, lacking, maxWrites)
	for _, g := range lacking {
		p.CreateServices = append(p.CreateServices, headlessService(s.Set, g.leader.Name, leaderReference(g.leader), map[string]string{
			leaderworkersetv1.GroupIndexLabelKey: strconv.Itoa(int(groupLabel(g))),
		}))
	}
	return p
}

// Child is what decisions use of a Service or a PodGroup.
type Child struct {
	Ref
	// Controller is the UID of what controls it; empty if nothing does.
	Controller types.UID
	// OfLeader means that a pod with the name of a leader pod of the set controls it.
	OfLeader bool
}

// ChildOf returns what decisions use of a Service or a PodGroup.
func ChildOf(object metav1.Object) Child {
	child := Child{Ref: Ref{Name: object.GetName(), UID: object.GetUID()}}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		set, index := helper.ParentAndOrdinal(owner.Name)
		child.Controller = owner.UID
		child.OfLeader = owner.Kind == "Pod" && owner.APIVersion == corev1.SchemeGroupVersion.String() && index >= 0 &&
			set == object.GetLabels()[leaderworkersetv1.SetNameLabelKey]
	}
	return child
}

// childrenByName are children by their names.
type childrenByName map[string]Child

func byName(of []Child) childrenByName {
	all := make(childrenByName, len(of))
	for i := range of {
		all[of[i].Name] = of[i]
	}
	return all
}

// has returns whether a child is there, or its name is: the garbage collector is about to delete what a former leader pod controls. Any
// other object with the name is no child, whatever its labels say.
func (c childrenByName) has(name string, controller types.UID) bool {
	child, found := c[name]
	return found && (child.OfLeader || child.Controller == controller)
}

// groupLabel returns the value of the label group-index of the pods of a group, which a template may set.
func groupLabel(g *group) int32 {
	if g.leader.Group >= 0 {
		return g.leader.Group
	}
	return g.index
}

// leaderReference returns the owner reference of what belongs to a leader pod.
func leaderReference(leader *Pod) metav1.OwnerReference {
	return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: leader.Name, UID: leader.UID}, corev1.SchemeGroupVersion.WithKind("Pod"))
}

func headlessService(set *leaderworkersetv1.LeaderWorkerSet, name string, owner metav1.OwnerReference,
	selector map[string]string) *corev1.Service {
	label := map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace, Labels: label, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: hostplan.Merged(selector, label),
		},
	}
}
