// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPermissionsMayBeGrantedLater is what an installation looks like that applies everything at once.
func TestPermissionsMayBeGrantedLater(t *testing.T) {
	tier.OnRequest(t, "waits for caches of authorization")
	t.Parallel()
	const user = "late-server"
	kubeconfig, err := plane.Kubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	flags := append(framework.Embedded(framework.ShortDir(t)), "--kubeconfig="+kubeconfig)
	server := plane.LaunchServer(t, flags...)
	awaitWaiting(t, server, "ConfigMap kube-system/extension-apiserver-authentication", "is forbidden", `User "`+user+`"`)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := plane.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.AwaitReady(t)
}
