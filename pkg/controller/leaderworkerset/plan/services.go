// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// createServices creates the headless Services that are missing: one for the set, or one for each group. Those of
// another policy stay as long as their owner.
func createServices(o Observed, groups []group, p *Plan) {
	exists := make(map[string]bool, len(o.Services))
	for i := range o.Services {
		exists[o.Services[i].Name] = true
	}
	if !helper.UniquePerReplica(o.Set.Spec.NetworkConfig) {
		if !exists[o.Set.Name] {
			p.CreateServices = append(p.CreateServices, headlessService(o.Set, o.Set.Name, *metav1.NewControllerRef(o.Set, setKind), nil))
		}
		return
	}
	var lacking []*group
	for i := range groups {
		if leader := groups[i].leader; !leader.Deleting && !exists[leader.Name] {
			lacking = append(lacking, &groups[i])
		}
	}
	for _, g := range fullPlan(o, lacking, maxWrites, p) {
		p.CreateServices = append(p.CreateServices, headlessService(o.Set, g.leader.Name, leaderReference(g.leader), map[string]string{
			leaderworkersetv1.GroupIndexLabelKey: strconv.Itoa(int(groupLabel(g))),
		}))
	}
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
