// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/release/v1/util"
)

// TestUninstallOrder checks that Helm deletes what makes kube-apiserver depend on our server before the server, and
// keeps what belongs to the store. While an APIService had no server, no namespace could be deleted.
func TestUninstallOrder(t *testing.T) {
	texts, err := release{values: "{store: {embedded: {backup: {enabled: true}}}, kinds: {disaggregatedset: true}}"}.texts(t)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		if !strings.HasSuffix(name, ".yaml") || strings.TrimSpace(text) == "" {
			delete(texts, name)
		}
	}
	_, manifests, err := util.SortManifests(texts, nil, util.UninstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	var order, kept []string
	for _, m := range manifests {
		if m.Head.Metadata == nil {
			t.Fatalf("%s has a document without an object:\n%s", m.Name, m.Content)
		}
		name := m.Head.Kind + "/" + m.Head.Metadata.Name
		if m.Head.Metadata.Annotations["helm.sh/resource-policy"] == "keep" {
			kept = append(kept, name)
			continue
		}
		order = append(order, name)
	}
	first := []string{
		"APIService/v1.disaggregatedset.x-k8s.io", "APIService/v1.leaderworkerset.x-k8s.io", "APIService/v1alpha1.archive.jobset-apiserver.io",
		"APIService/v1alpha1.batch.jobset-apiserver.io", "APIService/v1alpha2.jobset.x-k8s.io", "MutatingWebhookConfiguration/jobset-apiserver-pods",
	}
	if slices.Sort(order[:len(first)]); !slices.Equal(order[:len(first)], first) {
		t.Errorf("Helm must first delete %v, deletes %v", first, order)
	}
	slices.Sort(kept)
	want := []string{"ConfigMap/jobset-apiserver-lost-owners", "ConfigMap/jobset-apiserver-storage", "ConfigMap/jobset-apiserver-store", "Namespace/jobset-system", "PersistentVolumeClaim/jobset-apiserver-backups"}
	if !slices.Equal(kept, want) {
		t.Errorf("Helm must keep %v, keeps %v", want, kept)
	}
}
