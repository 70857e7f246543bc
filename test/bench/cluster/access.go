// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	reader          = "jobset-bench"
	readerNamespace = "default"
)

// allowReading makes a service account that may read metrics and profiles, because jobset-controller knows tokens only.
func (c *Cluster) allowReading(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader, Namespace: readerNamespace}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/debug/pprof/*"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: reader, Namespace: readerNamespace}},
	}
	_, err := c.Kube.CoreV1().ServiceAccounts(readerNamespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the account that reads metrics: %w", err)
	}
	_, err = c.Kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the role that reads metrics: %w", err)
	}
	_, err = c.Kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the role that reads metrics: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64((24 * time.Hour).Seconds()))}}
	token, err := c.Kube.CoreV1().ServiceAccounts(readerNamespace).CreateToken(ctx, reader, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("getting a token that reads metrics: %w", err)
	}
	c.token = token.Status.Token
	return nil
}

// controller is the way to the metrics of jobset-controller, whose certificate no authority has signed.
func (c *Cluster) controller() (*rest.Config, error) {
	address, err := c.address("controller-metrics")
	if err != nil {
		return nil, err
	}
	return c.metricsOf(address), nil
}

// metricsOf is the config of a client of an address that serves only metrics.
func (c *Cluster) metricsOf(address string) *rest.Config {
	return &rest.Config{
		Host: address, BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, UserAgent: reader,
	}
}
