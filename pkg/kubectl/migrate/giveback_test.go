// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// TestUnreadableObjectIsNotGivenBack: what lists have of it is not the object, and a controller of the CustomResourceDefinition would take
// its empty spec for what a user wants.
func TestUnreadableObjectIsNotGivenBack(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	g := &giver{client: client}
	out := &given{problems: map[types.NamespacedName]error{}, replaced: map[types.UID]types.UID{}}
	object := &custom{Object: map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}}
	object.SetNamespace("ns")
	object.SetName("bad")
	object.SetAnnotations(map[string]string{unreadable.Annotation: "its bytes are damaged"})
	there := object.DeepCopy()
	there.SetAnnotations(nil)
	for _, there := range []*custom{nil, there} {
		if err := g.giveReadable(t.Context(), nameOf(object), object, there, out); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.problems[nameOf(object)]; err == nil || !strings.Contains(err.Error(), "cannot read the object in its store: its bytes are damaged") {
		t.Errorf("problem: %v", err)
	}
	if actions := client.Actions(); len(actions) > 0 {
		t.Errorf("requests: %v", actions)
	}
}
