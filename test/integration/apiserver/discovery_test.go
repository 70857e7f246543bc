// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// actionKinds are the requests that are created as subresources of a JobSet.
var actionKinds = map[string]string{
	"restart": "JobSetRestart", "suspend": "JobSetSuspend", "resume": "JobSetResume", "cancel": "JobSetCancel", "retry": "JobSetRetry",
}

func testDiscovery(t *testing.T, _ *env) {
	list, err := plane.Kube.Discovery().ServerResourcesForGroupVersion("jobset.x-k8s.io/v1alpha2")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metav1.APIResource{}
	for _, resource := range list.APIResources {
		slices.Sort(resource.Verbs)
		if resource.Name == "jobsets" && resource.StorageVersionHash == "" {
			t.Error("jobsets has no storageVersionHash")
		}
		resource.StorageVersionHash = ""
		got[resource.Name] = resource
	}
	want := map[string]metav1.APIResource{
		"jobsets": {Name: "jobsets", SingularName: "jobset", Namespaced: true, Kind: "JobSet", ShortNames: []string{"js"}, Verbs: metav1.Verbs{
			"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
		}},
		"jobsets/status": {Name: "jobsets/status", Namespaced: true, Kind: "JobSet", Verbs: metav1.Verbs{"get", "patch", "update"}},
		"jobsets/scale": {
			Name: "jobsets/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: metav1.Verbs{"get", "patch", "update"},
		},
	}
	for action, kind := range actionKinds {
		want["jobsets/"+action] = metav1.APIResource{
			Name: "jobsets/" + action, Namespaced: true, Group: "batch.jobset-apiserver.io", Version: "v1alpha1", Kind: kind, Verbs: metav1.Verbs{"create"},
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// testAggregatedDiscovery asks the document that kubectl uses, which kube-apiserver builds from that of every server.
func testAggregatedDiscovery(t *testing.T, e *env) {
	client, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	_, resources, failed, err := client.GroupsAndMaybeResources()
	if err != nil || len(failed) > 0 {
		t.Fatalf("discovery: %v, %v", err, failed)
	}
	for version, list := range resources {
		if version.String() == "jobset.x-k8s.io/v1alpha2" {
			if len(list.APIResources) != 3+len(actionKinds) {
				t.Errorf("resources are %+v", list.APIResources)
			}
			return
		}
	}
	t.Error("the group is missing")
}

const jobSetDefinition = "io.x-k8s.jobset.v1alpha2.JobSet"

func testOpenAPIV3(t *testing.T, e *env) {
	code, body := e.server.Get(t, "/openapi/v3/apis/jobset.x-k8s.io/v1alpha2")
	if code != http.StatusUnauthorized {
		t.Errorf("without an identity: %d %s", code, body)
	}
	var document spec3.OpenAPI
	e.fetch(t, "/openapi/v3/apis/jobset.x-k8s.io/v1alpha2", &document)
	if document.Info.Title != "jobset-apiserver" || document.Info.Version != plane.Version {
		t.Errorf("the document is of %q, version %q", document.Info.Title, document.Info.Version)
	}
	schemas := document.Components.Schemas
	checkDefinitions(t, func(name string) (spec.Schema, bool) {
		schema, ok := schemas[name]
		if !ok {
			return spec.Schema{}, false
		}
		return *schema, true
	})
	const one = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/{name}"
	if _, ok := document.Paths.Paths[one+"/status"]; !ok {
		t.Error("the path of the status is missing")
	}
	for action, kind := range actionKinds {
		path := document.Paths.Paths[one+"/"+action]
		if path == nil || path.Post == nil {
			t.Errorf("%s cannot be created", action)
			continue
		}
		want := map[string]any{"group": "batch.jobset-apiserver.io", "version": "v1alpha1", "kind": kind}
		if diff := cmp.Diff(any(want), path.Post.Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("kind of %s (-want +got):\n%s", action, diff)
		}
		if diff := cmp.Diff(any([]any{want}), schemas["io.jobset-apiserver.batch.v1alpha1."+kind].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
			t.Errorf("kinds of the schema of %s (-want +got):\n%s", action, diff)
		}
	}
	want := []any{map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"}}
	if diff := cmp.Diff(any(want), schemas["io.k8s.api.autoscaling.v1.Scale"].Extensions["x-kubernetes-group-version-kind"]); diff != "" {
		t.Errorf("kinds of Scale (-want +got):\n%s", diff)
	}
}

func testOpenAPIV2(t *testing.T, e *env) {
	var document spec.Swagger
	e.fetch(t, "/openapi/v2", &document)
	checkDefinitions(t, func(name string) (spec.Schema, bool) {
		schema, ok := document.Definitions[name]
		return schema, ok
	})
}

// checkDefinitions looks at one example of each extension that clients and server-side apply depend on.
func checkDefinitions(t *testing.T, get func(string) (spec.Schema, bool)) {
	t.Helper()
	js, ok := get(jobSetDefinition)
	if !ok {
		t.Fatalf("%s is missing", jobSetDefinition)
	}
	kinds := js.Extensions["x-kubernetes-group-version-kind"]
	want := []any{map[string]any{"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": "JobSet"}}
	if diff := cmp.Diff(any(want), kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if js.Description == "" {
		t.Error("JobSet has no description")
	}
	jobSetSpec, ok := get("io.x-k8s.jobset.v1alpha2.JobSetSpec")
	if !ok {
		t.Fatal("JobSetSpec is missing")
	}
	jobs := jobSetSpec.Properties["replicatedJobs"].Extensions
	got := map[string]any{}
	for _, key := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy"} {
		got[key] = jobs[key]
	}
	wantJobs := map[string]any{
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
		"x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge",
	}
	if diff := cmp.Diff(wantJobs, got); diff != "" {
		t.Errorf("extensions of replicatedJobs (-want +got):\n%s", diff)
	}
	list, ok := get("io.x-k8s.jobset.v1alpha2.JobSetList")
	if !ok || list.Extensions["x-kubernetes-group-version-kind"] == nil {
		t.Error("JobSetList is missing or has no kind")
	}
}

// fetch reads a document of the server itself: kube-apiserver takes its time to include it in its own.
func (e *env) fetch(t *testing.T, path string, into any) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(e.server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func testTable(t *testing.T, e *env) {
	e.create(t, jobSet("a"))
	status := `{"status":{"restarts":2,"terminalState":"Completed","conditions":[{"type":"Completed","status":"True",` +
		`"reason":"AllJobsCompleted","message":"done","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if _, err := e.typed.Patch(t.Context(), "a", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	e.create(t, jobSet("b"))
	client, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	raw, err := client.RESTClient().Get().AbsPath("/apis/jobset.x-k8s.io/v1alpha2/namespaces/"+e.namespace+"/jobsets").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	var narrow, wide []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, strings.ToLower(column.Name))
		}
	}
	if diff := cmp.Diff([]string{"Name", "TerminalState", "Restarts", "Completed", "Suspended", "Age"}, narrow); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"phase", "ready", "attempt", "reason", "duration"}, wide); diff != "" {
		t.Errorf("columns of the wide output (-want +got):\n%s", diff)
	}
	rows := map[any][]any{}
	for _, row := range table.Rows {
		rows[row.Cells[0]] = row.Cells[1:5]
	}
	want := map[any][]any{"a": {"Completed", "2", "True", nil}, "b": {nil, nil, nil, nil}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
