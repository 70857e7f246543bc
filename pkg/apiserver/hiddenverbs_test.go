// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	clientrest "k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/archivetest"
)

// discoveries returns clients of both forms of discovery: the aggregated one, and a list for each version.
func (s *inProcess) discoveries(t *testing.T) map[string]discovery.DiscoveryInterface {
	t.Helper()
	listening := httptest.NewServer(s.handler)
	t.Cleanup(listening.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&clientrest.Config{Host: listening.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]discovery.DiscoveryInterface{"aggregated": client, "a list for each version": client.WithLegacy()}
}

// TestNamespacesDoNotDeleteRuns looks for what to delete as the namespace controller of the cluster does.
func TestNamespacesDoNotDeleteRuns(t *testing.T) {
	for form, client := range withArchive(t, archivetest.New()).discoveries(t) {
		all, err := discovery.ServerPreferredNamespacedResources(client)
		if err != nil {
			t.Fatal(err)
		}
		deletable := resourcesOf(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete"}}, all))
		if slices.Contains(deletable, "runs") || !slices.Contains(deletable, "jobsets") {
			t.Errorf("%s: the end of a namespace deletes %v", form, deletable)
		}
		if readable := resourcesOf(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"get", "list"}}, all)); !slices.Contains(readable, "runs") {
			t.Errorf("%s: clients can read %v", form, readable)
		}
	}
}

func resourcesOf(lists []*metav1.APIResourceList) (names []string) {
	for _, list := range lists {
		for _, resource := range list.APIResources {
			names = append(names, resource.Name)
		}
	}
	return names
}

// TestHidingChangesNothingElse compares with a server that hides nothing.
func TestHidingChangesNothingElse(t *testing.T) {
	hiding := withArchive(t, archivetest.New()).discoveries(t)
	open := withArchive(t, archivetest.New(), func(c *apiserver.Config) {
		for i := range c.APIGroups {
			c.APIGroups[i].HiddenVerbs = nil
		}
	}).discoveries(t)
	for form, client := range hiding {
		_, got, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		_, want, err := open[form].ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		byVersion := func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) }
		slices.SortFunc(got, byVersion)
		slices.SortFunc(want, byVersion)
		hidden := 0
		for _, list := range want {
			for i := range list.APIResources {
				if resource := &list.APIResources[i]; resource.Name == "runs" && slices.Contains(resource.Verbs, "delete") {
					resource.Verbs = slices.DeleteFunc(resource.Verbs, func(verb string) bool { return verb == "delete" })
					hidden++
				}
			}
		}
		if diff := cmp.Diff(want, got); hidden != 1 || diff != "" {
			t.Errorf("%s: %d resources hide a verb (-want +got):\n%s", form, hidden, diff)
		}
	}
}

// TestOpenAPIHasHiddenVerbs: the document describes what the server answers, and each path once.
func TestOpenAPIHasHiddenVerbs(t *testing.T) {
	s := withArchive(t, archivetest.New())
	s.generic.PrepareRun()
	code, body := s.get("/openapi/v3/apis/archive.jobset-apiserver.io/v1alpha1", mediaJSON)
	var document struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(body, &document); err != nil || code != http.StatusOK {
		t.Fatalf("%d: %v: %s", code, err, body)
	}
	got := map[string][]string{}
	for path, operations := range document.Paths {
		for method, operation := range operations {
			if _, ok := operation.(map[string]any); ok {
				got[path] = append(got[path], method)
			}
		}
		slices.Sort(got[path])
	}
	const version = "/apis/archive.jobset-apiserver.io/v1alpha1/"
	want := map[string][]string{
		version: {"get"}, version + "runs": {"get"}, version + "namespaces/{namespace}/runs": {"get"},
		version + "namespaces/{namespace}/runs/{name}": {"delete", "get"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}
