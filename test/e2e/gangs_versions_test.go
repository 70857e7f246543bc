// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	gangs "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// groupsInOlderVersion has kube-apiserver serve v1beta1 and v1alpha3. The controller uses v1beta1. What it would create in v1alpha3 is
// accepted, and reads back in v1beta1 like the objects that it did create.
func groupsInOlderVersion(k *kubectl) {
	if k.serves(gangs.V1alpha2) {
		k.Skip("Kubernetes 1.36 has no other version than " + gangs.V1alpha2.GroupVersion().String())
	}
	slots := k.withRoom()
	k.okIn(runningSet("train", slots), "create", "-f", "-")
	k.untilRunning(gang, "train")
	js := &jobsetv1alpha2.JobSet{}
	k.decode(js, "get", "jobset", "train")
	for _, object := range gangs.Objects(gangs.V1beta1, js) {
		created := &unstructured.Unstructured{}
		k.decode(created, "get", resourceOf(object), object.GetName())
		if got, want := created.GetAPIVersion(), gangs.V1beta1.GroupVersion().String(); got != want {
			k.Errorf("%s has the version %s, want %s", object.GetKind(), got, want)
		}
	}
	for _, object := range gangs.Objects(gangs.V1alpha3, js) {
		created := &unstructured.Unstructured{}
		k.decode(created, "get", resourceOf(object), object.GetName())
		object.SetName("older-" + object.GetName())
		object.SetOwnerReferences(nil) // or the controller deletes it
		object.SetLabels(nil)
		manifest, err := json.Marshal(object)
		if err != nil {
			k.Fatal(err)
		}
		k.okIn(string(manifest), "create", "-f", "-")
		older := &unstructured.Unstructured{}
		k.decode(older, "get", resourceOf(object), object.GetName())
		if diff := cmp.Diff(created.Object["spec"], older.Object["spec"]); diff != "" {
			k.Errorf("%s: created in v1beta1 and in v1alpha3 (-v1beta1 +v1alpha3):\n%s", object.GetKind(), diff)
		}
	}
}

// serves returns whether kube-apiserver serves a version of the scheduling API. Kubernetes 1.36 alone has v1alpha2.
func (k *kubectl) serves(api gangs.API) bool {
	k.Helper()
	return slices.Contains(strings.Fields(k.ok("api-versions")), api.GroupVersion().String())
}

// decode decodes what kubectl prints as JSON.
func (k *kubectl) decode(into any, args ...string) {
	k.Helper()
	if err := json.Unmarshal([]byte(k.ok(append(args, "-o", "json")...)), into); err != nil {
		k.Fatal(err)
	}
}

// resourceOf returns the resource of an object of scheduling.k8s.io for kubectl, in the preferred version.
func resourceOf(object *unstructured.Unstructured) string {
	return strings.ToLower(object.GetKind()) + "s.scheduling.k8s.io"
}
