// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TemplateMetadata returns what the published schemas have of the metadata of a template: the rest would be pruned from a custom resource.
func TemplateMetadata(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        m.Name,
		Namespace:   m.Namespace,
		Labels:      m.Labels,
		Annotations: m.Annotations,
		Finalizers:  m.Finalizers,
	}
}
