// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// foreign are the permissions of roles that Kubernetes ships, to which manifests bind.
var foreign = map[string][]authorizationv1.ResourceAttributes{
	"system:auth-delegator": {
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	},
	"extension-apiserver-authentication-reader": {
		{Verb: "get", Resource: "configmaps", Name: "extension-apiserver-authentication", Namespace: metav1.NamespaceSystem},
	},
}

// permissions returns what the roles of a manifest allow, and what the roles of Kubernetes allow to which it binds.
func permissions(manifest string) (all []authorizationv1.ResourceAttributes, err error) {
	for _, document := range strings.Split(manifest, "\n---\n") {
		var object struct {
			metav1.TypeMeta `json:",inline"`
			Metadata        metav1.ObjectMeta   `json:"metadata"`
			Rules           []rbacv1.PolicyRule `json:"rules"`
			RoleRef         rbacv1.RoleRef      `json:"roleRef"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("reading the roles of the manifests: %w", err)
		}
		all = append(all, foreign[object.RoleRef.Name]...)
		for i := range object.Rules {
			all = append(all, ofRule(&object.Rules[i], object.Metadata.Namespace)...)
		}
	}
	return all, nil
}

// ofRule returns the permissions of a rule in a namespace, or in all of them if it is empty.
func ofRule(rule *rbacv1.PolicyRule, namespace string) (all []authorizationv1.ResourceAttributes) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, authorizationv1.ResourceAttributes{
						Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name, Namespace: namespace,
					})
				}
			}
		}
	}
	return all
}
