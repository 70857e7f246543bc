// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ownNamespace is where the manifests put the service accounts of this server and of the controller.
const ownNamespace = "jobset-system"

// account is for whom a watch is counted.
type account struct {
	user string
	// namespace is the namespace of a service account.
	namespace string
	// reserved accounts may use the reserve.
	reserved bool
}

// accountOf returns the account of a user.
func accountOf(u user.Info) account {
	a := account{user: u.GetName(), reserved: u.GetName() == user.KubeControllerManager || slices.ContainsFunc(u.GetGroups(), usesReserve)}
	if namespace, _, err := serviceaccount.SplitUsername(u.GetName()); err == nil {
		a.namespace = namespace
	}
	return a
}

// usesReserve returns whether members of a group may use the reserve: administrators, the service accounts of the cluster's own
// controllers, such as the garbage collector and the quota controller, and those of this server and of its controller.
func usesReserve(group string) bool {
	return group == user.SystemPrivilegedGroup ||
		group == serviceaccount.MakeNamespaceGroupName("kube-system") || group == serviceaccount.MakeNamespaceGroupName(ownNamespace)
}
