// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// definition returns what a cluster has with a CustomResourceDefinition: its objects, and who answers for its group.
func definition(group, version, plural, kind string, served bool, service string, objects int) map[string]string {
	items := strings.TrimSuffix(strings.Repeat(`{"apiVersion":"`+group+"/"+version+`","kind":"`+kind+`","metadata":{"name":"a"}},`, objects), ",")
	return map[string]string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + "." + group: fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
			`"spec":{"group":%q,"versions":[{"name":"v0","served":false},{"name":%q,"served":%t}]}}`, group, version, served),
		"/apis/apiregistration.k8s.io/v1/apiservices/" + version + "." + group: `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","spec":{` + service + `}}`,
		"/apis/" + group + "/" + version: fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":"%s/%s","resources":[{"name":%q,"namespaced":true,"kind":%q,"verbs":["list"]}]}`,
			group, version, plural, kind),
		"/apis/" + group + "/" + version + "/" + plural: fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"%sList","items":[%s]}`, group, version, kind, items),
	}
}

// TestRefusedBesideDefinitions checks that no group is routed away from a definition with objects.
func TestRefusedBesideDefinitions(t *testing.T) {
	lws := func(served bool, service string, objects int) map[string]string {
		return definition("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", served, service, objects)
	}
	sets := definition("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true, "", 1)
	const message = "kinds.leaderworkerset: CustomResourceDefinition leaderworkersets.leaderworkerset.x-k8s.io has objects (2), which no client would see once kube-apiserver forwards " +
		"requests for the group to jobset-apiserver. Set kinds.leaderworkerset=false to leave the kind to its controller, or move the objects first, as " +
		"docs/operations/take-over.md says, and set definitionsImported=true"
	for name, tc := range map[string]struct {
		objects         map[string]string
		values, message string
	}{
		"no definition":                      {nil, "{}", ""},
		"objects":                            {lws(true, "", 2), "{}", message},
		"objects, and the kind is left":      {lws(true, "", 2), "kinds: {leaderworkerset: false}", ""},
		"objects that were moved":            {lws(true, "", 2), "definitionsImported: true", ""},
		"no objects":                         {lws(true, "", 0), "{}", ""},
		"a definition that serves nothing":   {lws(false, "", 2), "{}", ""},
		"a group that is routed to a server": {lws(true, `"service":{"name":"jobset-apiserver","namespace":"jobset-system"}`, 2), "{}", ""},
		"objects of another kind":            {sets, "kinds: {leaderworkerset: false}", "kinds.jobset: CustomResourceDefinition jobsets.jobset.x-k8s.io has objects (1), "},
	} {
		_, err := release{values: tc.values, cluster: answering(t, tc.objects)}.texts(t)
		switch {
		case tc.message == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.message != "" && (err == nil || !strings.Contains(err.Error(), tc.message)):
			t.Errorf("%s: the message must contain %q, is %v", name, tc.message, err)
		}
	}
	if _, err := (release{values: "{}"}).texts(t); err != nil {
		t.Errorf("without a cluster: %v", err)
	}
}

// TestDefinitionsOfAllGroups checks that the chart looks for definitions of every group that it can route.
func TestDefinitionsOfAllGroups(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, chartDir, "templates", "definitions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for group, value := range maps.All(kinds) {
		line := fmt.Sprintf("\n  %q (dict %q", strings.TrimPrefix(value, ".Values.kinds."), "")
		line = strings.TrimSuffix(line, `"`)
		at := strings.Index(string(content), line)
		if at < 0 || !strings.Contains(strings.SplitN(string(content)[at+1:], "\n", 2)[0], "."+group+`"`) {
			t.Errorf("templates/definitions.yaml: no definition of %s", group)
		}
	}
}
