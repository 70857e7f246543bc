// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestImages checks which images the chart installs, as it is in the repository, in a release, and after it was published.
func TestImages(t *testing.T) {
	digest := func(character string) string { return "sha256:" + strings.Repeat(character, 64) }
	released := map[string]string{"jobset-apiserver.io/digest.jobset-apiserver": digest("a"), "jobset-apiserver.io/digest.jobset-controller": digest("b")}
	published := map[string]string{"jobset-apiserver.io/registry": "registry.example.com/team"}
	for key, value := range released {
		published[key] = value
	}
	for name, test := range map[string]struct {
		annotations        map[string]string
		values             string
		server, controller string
	}{
		"from the repository":     {nil, "image: {registry: r.example.com/}", "r.example.com/jobset-apiserver:v0.1.0", "r.example.com/jobset-controller:v0.1.0"},
		"on the nodes":            {nil, "image: {local: true}", "jobset-apiserver:v0.1.0", "jobset-controller:v0.1.0"},
		"repositories with hosts": {nil, "{image: {local: false}, apiserver: {image: {repository: a.example.com/x}}, controller: {image: {repository: b.example.com/y}}}", "a.example.com/x:v0.1.0", "b.example.com/y:v0.1.0"},
		"of a release":            {released, "image: {registry: r.example.com}", "r.example.com/jobset-apiserver@" + digest("a"), "r.example.com/jobset-controller@" + digest("b")},
		"of a release on the nodes, which do not know the digest": {released, "image: {local: true}", "jobset-apiserver:v0.1.0", "jobset-controller:v0.1.0"},
		"published":                   {published, "{}", "registry.example.com/team/jobset-apiserver@" + digest("a"), "registry.example.com/team/jobset-controller@" + digest("b")},
		"published, and mirrored":     {published, "image: {registry: r.example.com}", "r.example.com/jobset-apiserver@" + digest("a"), "r.example.com/jobset-controller@" + digest("b")},
		"published, and on the nodes": {published, "image: {local: true}", "jobset-apiserver:v0.1.0", "jobset-controller:v0.1.0"},
		"another tag":                 {published, "image: {tag: v9}", "registry.example.com/team/jobset-apiserver:v9", "registry.example.com/team/jobset-controller:v9"},
		"another digest": {
			published, "{image: {tag: v9}, controller: {image: {digest: '" + digest("c") + "'}}}", "registry.example.com/team/jobset-apiserver:v9", "registry.example.com/team/jobset-controller@" + digest("c"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := release{values: test.values, annotations: test.annotations}.objects(t)
			if image := at(got[server], container+"image"); image != test.server {
				t.Errorf("the image of the server is %s, must be %s", image, test.server)
			}
			if image := at(got[controller], container+"image"); image != test.controller {
				t.Errorf("the image of the controller is %s, must be %s", image, test.controller)
			}
		})
	}
	if _, err := (release{values: "{}", annotations: released}).texts(t); err == nil || !strings.Contains(err.Error(), "image.registry: is empty") {
		t.Errorf("a release that was not published has no registry: %v", err)
	}
}
