// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestPublish(t *testing.T) {
	client := fake.NewClientset()
	conflicts := 2
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts < 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, witness.LostOwnersName, nil)
	})
	for _, step := range []struct {
		name string
		list witness.LostOwners
		want []string
	}{
		{"the first list", witness.LostOwners{NewUUID: "b", Revision: 7, Owners: []types.UID{uidOf(1), "x"}}, []string{"get", "create"}},
		{"the same list", witness.LostOwners{NewUUID: "b", Revision: 7, Owners: []types.UID{uidOf(1), "x"}}, []string{"get"}},
		{"another list, and others write", witness.LostOwners{NewUUID: "c", More: true}, []string{"get", "update", "get", "update", "get", "update"}},
	} {
		client.ClearActions()
		if err := owners.Publish(t.Context(), client.CoreV1(), step.list); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var verbs []string
		for _, action := range client.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		if diff := cmp.Diff(step.want, verbs); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", step.name, diff)
		}
		cm, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "jobset-apiserver-lost-owners", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := witness.ReadLostOwners(cm); err != nil || !cmp.Equal(&step.list, got) {
			t.Errorf("%s: %v (-want +got):\n%s", step.name, err, cmp.Diff(&step.list, got))
		}
	}
	conflicts = 100
	const want = "writing the list of lost owners to ConfigMap kube-system/jobset-apiserver-lost-owners: "
	if err := owners.Publish(t.Context(), client.CoreV1(), witness.LostOwners{NewUUID: "d"}); !apierrors.IsConflict(err) || err.Error()[:len(want)] != want {
		t.Error(err)
	}
}
