// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

// NewScheme returns a scheme with everything that the server serves, and the codecs for it.
func NewScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := published()
	// Patches are made on the internal version of a group, and there is no other Scale that could be that.
	scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal}, &autoscalingv1.Scale{})
	return scheme, serializer.NewCodecFactory(scheme)
}

// NewDefinitionNamer names the definitions of the published schema, with the kinds that clients know.
func NewDefinitionNamer() *openapi.DefinitionNamer { return openapi.NewDefinitionNamer(published()) }

// NewDefinitionNames returns the names of the definitions of what clients write, by the group versions of the kinds.
func NewDefinitionNames() (map[schema.GroupVersion][]string, error) {
	scheme, out := published(), map[schema.GroupVersion][]string{}
	for gvk, written := range scheme.AllKnownTypes() {
		if _, ok := reflect.New(written).Interface().(metav1.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		name, err := scheme.ToOpenAPIDefinitionName(gvk)
		if err != nil {
			return nil, err
		}
		out[gvk.GroupVersion()] = append(out[gvk.GroupVersion()], name)
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out, nil
}

// published returns a scheme in which every type that clients see has the kinds that they see.
func published() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, group := range apigroups.All() {
		group.Install(scheme)
	}
	scheme.AddKnownTypes(autoscalingv1.SchemeGroupVersion, &autoscalingv1.Scale{})
	// Options of requests are decoded as kinds of the group version "v1", whatever group is asked.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}
