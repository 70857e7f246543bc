// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestNamespaceUID: the server says in which namespace an object was created, whatever its clients say.
func TestNamespaceUID(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	namespace, err := plane.Kube.CoreV1().Namespaces().Get(t.Context(), e.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := string(namespace.UID)
	set := e.create(t, jobSet("a", func(js *jobsetv1alpha2.JobSet) { js.Annotations = map[string]string{namespaceuid.Annotation: "mine"} }))
	expect := func(what string, object metav1.Object, err error) {
		t.Helper()
		if err != nil || object.GetAnnotations()[namespaceuid.Annotation] != want {
			t.Errorf("%s: %v, annotations %q, want the UID %s", what, err, object.GetAnnotations(), want)
		}
	}
	expect("creation", set, nil)
	for what, value := range map[string]string{"another value": `"other"`, "no value": "null", "the same value": fmt.Sprintf("%q", want)} {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, namespaceuid.Annotation, value)
		set, err = e.typed.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{})
		expect("a patch to "+what, set, err)
	}
	set.Annotations = nil
	set, err = e.typed.Update(t.Context(), set, metav1.UpdateOptions{})
	expect("an update without annotations", set, err)
	generation := set.Generation
	applied := fmt.Appendf(nil, `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"a","labels":{"applied":"yes"}}}`)
	set, err = e.typed.Patch(t.Context(), "a", types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "test"})
	expect("an apply", set, err)
	if set.Generation != generation {
		t.Errorf("the generation is %d, was %d", set.Generation, generation)
	}

	group := builders.LeaderWorkerSet("b", 1, 2)
	group.Namespace, group.ResourceVersion, group.UID = e.namespace, "", ""
	created, err := groupClient(t, plane.Config, e.namespace).Create(t.Context(), group, metav1.CreateOptions{})
	expect("a LeaderWorkerSet", created, err)
}
