// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// returned is an object in its CustomResourceDefinition, which may have had another UID in jobset-apiserver.
func returned(s subject, name, uid, former string) *custom {
	object := &custom{}
	object.SetGroupVersionKind(s.returning().GroupVersion().WithKind(s.kind))
	object.SetNamespace("ns")
	object.SetName(name)
	object.SetUID(types.UID(uid))
	if former != "" {
		object.SetAnnotations(map[string]string{formerUID: former})
	}
	return object
}

func subjectOf(t *testing.T, kind string) subject {
	t.Helper()
	for _, s := range subjects {
		if s.kind == kind {
			return s
		}
	}
	t.Fatalf("no kind %s moves", kind)
	return subject{}
}

// TestOwnersThatMove: with the UID that its owner had in jobset-apiserver, the garbage collector would delete an object that is written
// back, with all of its children.
func TestOwnersThatMove(t *testing.T) {
	sets, groups := subjectOf(t, "DisaggregatedSet"), subjectOf(t, "LeaderWorkerSet")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{sets.returning(): "DisaggregatedSetList", groups.returning(): "LeaderWorkerSetList"},
		returned(sets, "moved", "a", ""), returned(sets, "late", "new", "old"), returned(sets, "other", "c", ""))
	m := &mover{dynamic: client, subjects: []subject{sets, groups}, clock: clocktesting.NewFakePassiveClock(start)}
	for name, c := range map[string]struct {
		owner metav1.OwnerReference
		uid   types.UID
		// known is whether the object need not be written again.
		known bool
	}{
		"keeps its UID":      {metav1.OwnerReference{Name: "moved", UID: "a"}, "a", true},
		"gets another UID":   {metav1.OwnerReference{Name: "late", UID: "old"}, "new", true},
		"has its new UID":    {metav1.OwnerReference{Name: "late", UID: "new"}, "new", true},
		"is not there yet":   {metav1.OwnerReference{Name: "absent", UID: "d"}, "d", false},
		"is another one":     {metav1.OwnerReference{Name: "other", UID: "b"}, "b", false},
		"is of another kind": {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "late", UID: "old"}, "old", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.owner.Kind == "" {
				c.owner.APIVersion, c.owner.Kind = sets.resource.GroupVersion().String(), sets.kind
			}
			object := returned(groups, "child", "child", "")
			object.SetOwnerReferences([]metav1.OwnerReference{c.owner})
			before := object.DeepCopy()
			wanted, noted, err := m.giver(groups, false).prepare(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			want := c.owner
			want.UID = c.uid
			if diff := cmp.Diff([]metav1.OwnerReference{want}, wanted.GetOwnerReferences()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if known := noted != nil; known != c.known {
				t.Errorf("the object counts as written: %t, want %t", known, c.known)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object of jobset-apiserver was changed (-before +now):\n%s", diff)
			}
		})
	}

	client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no connection")
	})
	object := returned(groups, "child", "child", "")
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "disaggregatedset.x-k8s.io/v1", Kind: sets.kind, Name: "late", UID: "old"}})
	const want = "reading the owner DisaggregatedSet late of leaderworkersets ns/child in its CustomResourceDefinition: no connection"
	if _, _, err := m.giver(groups, false).prepare(t.Context(), object); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestOwnersMoveFirst: the UIDs of owners must be known when what they own is written.
func TestOwnersMoveFirst(t *testing.T) {
	var order []string
	m := &mover{subjects: subjects}
	if err := m.each(func(s subject) error { order = append(order, s.kind); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "JobSet DisaggregatedSet DisaggregatedSetRoleScaler LeaderWorkerSet" {
		t.Errorf("kinds move in the order %s", got)
	}
}

// TestChildrenOfMovingGroups: writes of groups that move are refused, so that a migration which removed owner references there ended.
func TestChildrenOfMovingGroups(t *testing.T) {
	sets, groups := subjectOf(t, "DisaggregatedSet"), subjectOf(t, "LeaderWorkerSet")
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(version, kind string) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child"},
		}
	}
	kube := fake.NewClientset()
	verbs := metav1.Verbs{"list", "patch", "delete"}
	kube.Resources = []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "statefulsets", Kind: "StatefulSet", Namespaced: true, Verbs: verbs}}},
		{GroupVersion: groups.resource.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: groups.resource.Resource, Kind: groups.kind, Namespaced: true, Verbs: verbs}}},
	}
	m := &mover{
		discovery: kube.Discovery(), subjects: []subject{sets, groups},
		metadata: metadatafake.NewSimpleMetadataClient(scheme, object("apps/v1", "StatefulSet"), object(groups.resource.GroupVersion().String(), groups.kind)),
	}
	var found []string
	if err := m.children(t.Context(), metav1.ListOptions{}, func(_ context.Context, c child) error {
		found = append(found, c.resource.Resource+"/"+c.meta.Name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"statefulsets/child"}, found); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}
