// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// TestTargetsAreThoseOfServedGroups checks that a group whose gate is off has none.
func TestTargetsAreThoseOfServedGroups(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Options: &options.Options{APIGroups: apigroups.All(), Gate: gate}}
	want := []string{
		"apiservices/v1alpha2.jobset.x-k8s.io", "apiservices/v1alpha1.batch.jobset-apiserver.io", "apiservices/v1.leaderworkerset.x-k8s.io",
		"apiservices/v1alpha1.archive.jobset-apiserver.io", "mutatingwebhookconfigurations/jobset-apiserver-pods",
	}
	names := func() (names []string) {
		for _, target := range r.targets() {
			names = append(names, target.String())
		}
		return names
	}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := gate.Set("DisaggregatedSet=true"); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 6 || got[3] != "apiservices/v1.disaggregatedset.x-k8s.io" {
		t.Errorf("with the gate: %v", got)
	}
}
