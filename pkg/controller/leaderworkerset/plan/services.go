// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// createServices creates the headless Services that are missing: one for the set, or one for each group. Those of another policy stay as long as their owner.
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
	for i := range groups {
		leader := groups[i].leader
		if leader.Deleting || exists[leader.Name] {
			continue
		}
		if len(p.CreateServices) == maxWrites {
			p.RequeueAfter = sooner(p.RequeueAfter, time.Second)
			return
		}
		p.CreateServices = append(p.CreateServices, headlessService(o.Set, leader.Name, leaderReference(leader), map[string]string{
			leaderworkersetv1.GroupIndexLabelKey: strconv.Itoa(int(groupLabel(&groups[i]))),
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

func headlessService(set *leaderworkersetv1.LeaderWorkerSet, name string, owner metav1.OwnerReference, selector map[string]string) *corev1.Service {
	label := map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace, Labels: label, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: merged(selector, label)},
	}
}
