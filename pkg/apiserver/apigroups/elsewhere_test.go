// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apigroups

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRunsAreStoredElsewhere: what looks at etcd does not know runs, and clients do.
func TestRunsAreStoredElsewhere(t *testing.T) {
	version, all := schema.GroupVersion{Group: "archive.jobset-apiserver.io", Version: "v1alpha1"}, All()
	if slices.Contains(all.StorageVersions(), version) || slices.Contains(all.Stored(), version.WithResource("runs").GroupResource()) {
		t.Errorf("etcd has %v in %v", all.Stored(), all.StorageVersions())
	}
	for _, group := range all.InEtcd() {
		if group.Group() == version.Group {
			t.Errorf("%s is in etcd", version)
		}
	}
	if len(all.InEtcd()) != len(all)-1 || len(all.Stored()) == 0 {
		t.Errorf("%d of %d groups are in etcd, with %v", len(all.InEtcd()), len(all), all.Stored())
	}
	if !all.HasResource(version.Group, "runs") || all.HasResource(version.Group, "jobsets") || all.HasResource("jobset.x-k8s.io", "runs") {
		t.Error("the resource runs belongs to the archive")
	}
	if config := all.Enabled(); !slices.Contains(all.Served(config), version) || len(all.AbsentResources(config)) > 0 {
		t.Errorf("by default, the server serves %v without %v", all.Served(config), all.AbsentResources(config))
	}
	if all.RecordsNamespace(version.WithResource("runs").GroupResource()) {
		t.Error("the server records the namespace of runs, which outlive it")
	}
}
