// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"cmp"
	"context"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

var lwsResource = schema.GroupResource{Group: "leaderworkerset.x-k8s.io", Resource: "leaderworkersets"}

func crd(served bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": lwsResource.String()},
		"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "served": served}}},
	}}
}

func service(routed bool) *unstructured.Unstructured {
	spec := map[string]any{}
	if routed {
		spec["service"] = map[string]any{"namespace": "jobset-system", "name": "jobset-apiserver"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.leaderworkerset.x-k8s.io"}, "spec": spec,
	}}
}

// TestDefinitions: objects that cannot be counted do not count as none.
func TestDefinitions(t *testing.T) {
	const hiddenBy = "v1.leaderworkerset.x-k8s.io"
	for name, tc := range map[string]struct {
		objects  []runtime.Object
		sets     []string
		imported bool
		want     []owners.Definition
		fails    bool
		// group is asked for; empty for the one of the definition.
		group string
	}{
		"there is none":                          {},
		"it was never used":                      {objects: []runtime.Object{crd(true), service(false)}},
		"it serves no version":                   {objects: []runtime.Object{crd(false), service(true)}, sets: []string{"a"}},
		"it has objects":                         {objects: []runtime.Object{crd(true), service(false)}, sets: []string{"a", "known"}, want: []owners.Definition{{GroupResource: lwsResource}}},
		"its objects are imported":               {objects: []runtime.Object{crd(true), service(false)}, sets: []string{"known"}, imported: true},
		"another group is asked for":             {objects: []runtime.Object{crd(true), service(true)}, group: "jobset.x-k8s.io"},
		"it is hidden":                           {objects: []runtime.Object{crd(true), service(true)}, want: []owners.Definition{{GroupResource: lwsResource, HiddenBy: hiddenBy}}},
		"it is hidden, and objects are imported": {objects: []runtime.Object{crd(true), service(true)}, imported: true},
		"nobody says who serves it":              {objects: []runtime.Object{crd(true)}, fails: true},
	} {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		var stored []runtime.Object
		for _, set := range tc.sets {
			stored = append(stored, &metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: lws, Kind: "LeaderWorkerSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: set, UID: types.UID(set)},
			})
		}
		d := &owners.Definitions{
			Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), tc.objects...), Metadata: metadatafake.NewSimpleMetadataClient(scheme, stored...),
			Resources: []schema.GroupResource{lwsResource},
			Imported:  func(context.Context, schema.GroupResource) (bool, error) { return tc.imported, nil },
		}
		got, err := d.Check(t.Context(), sets.New(cmp.Or(tc.group, lwsResource.Group)))
		if diff := gocmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
