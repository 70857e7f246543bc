// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group.
const GroupName = "archive.jobset-apiserver.io"

var (
	// SchemeGroupVersion is the group and version of the types of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what adds this package to a scheme.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, addFieldLabelConversion)
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme adds the types and their conversions to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind qualifies a kind with the group.
func Kind(kind string) schema.GroupKind { return SchemeGroupVersion.WithKind(kind).GroupKind() }

// Resource qualifies a resource with the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Run{}, &RunList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
