// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// TestMessages shows each paragraph in testdata/messages.txt.
func TestMessages(t *testing.T) {
	t.Parallel()
	const right, found = "6f1c2f0a-3f77-4f0e-8b57-0d6d3f2f4f0e", "0b3a9c54-6f4c-4c06-a4ae-7c0c2f6f3d11"
	g := &Guard{Config: Config{Version: "v0.13.0"}, store: &store{key: "/registry/jobset-apiserver/store-witness"}}
	key := func(change func(*witness.Found)) *witness.Found {
		k := &witness.Found{Key: witness.Key{UUID: right, ClusterUID: "c1", Format: 1, Version: "v0.13.0"}, ModRevision: 4711, Revision: 4720}
		change(k)
		return k
	}
	record := &witness.Record{UUID: right, Floor: 5000}
	many := []string{"research/train-0", "research/train-1", "research/train-2", "vision/a-0", "vision/b-0", "vision/c-0"}
	var text strings.Builder
	for _, tc := range []struct {
		name   string
		reason witness.Reason
		key    *witness.Found
		lost   int
		jobs   []string
		served bool
		claims int
		sets   int
		// definitions are the definitions of custom resources.
		definitions []owners.Definition
		// groups are refused while others are served.
		groups []string
	}{
		{name: "an empty store", reason: witness.ReasonEmptyStore, lost: 48, jobs: many},
		{name: "an empty store, noticed while the server ran", reason: witness.ReasonEmptyStore, lost: -1, served: true},
		{name: "a foreign store", reason: witness.ReasonForeignStore, key: key(func(k *witness.Found) { k.UUID = found }), lost: 1, jobs: many[:1]},
		{name: "another cluster's store", reason: witness.ReasonOtherCluster, key: key(func(k *witness.Found) { k.ClusterUID = "c2" }), lost: 3, jobs: many[:3], claims: 2},
		{name: "a restored store", reason: witness.ReasonRolledBack, key: key(func(*witness.Found) {})},
		{name: "a copy that is a little older", reason: witness.ReasonRolledBack, key: key(func(k *witness.Found) { k.Behind = 4730 }), lost: 1, jobs: many[:1], served: true},
		{name: "unknown owners", reason: witness.ReasonUnknownOwners, lost: 48, jobs: many},
		{name: "unknown owners of claims", reason: witness.ReasonUnknownOwners, claims: 20},
		{name: "unknown owners of sets", reason: witness.ReasonUnknownOwners, sets: 24, lost: 2, jobs: many[:2]},
		{name: "custom resources", reason: witness.ReasonCustomResources, sets: 12, definitions: []owners.Definition{{GroupResource: lwsResource}}},
		{name: "custom resources that nobody can count", reason: witness.ReasonCustomResources, definitions: []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}},
		{name: "unknown owners of a group", reason: witness.ReasonUnknownOwners, sets: 24, groups: []string{lwsGroup}},
		{name: "custom resources of a group", reason: witness.ReasonCustomResources, groups: []string{lwsGroup}, definitions: []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}},
		{name: "a newer format", reason: witness.ReasonNewerFormat, key: key(func(k *witness.Found) { k.Format, k.Version = 2, "v0.15.1" }), lost: -1},
	} {
		s := &observation{cluster: "c1", record: record, key: tc.key}
		r := &refusal{definitions: tc.definitions}
		r.Refusal = witness.Refusal{Reason: tc.reason, NewUUID: found, Revision: s.keyRevision(), JobsAtStake: tc.lost, ClaimsAtStake: tc.claims, Jobs: tc.jobs, Served: tc.served, Groups: tc.groups}
		if tc.sets > 0 {
			r.AtStake = []witness.Loss{{Kind: "StatefulSet", Count: tc.sets, Names: []string{"serve/a", "serve/b"}}, {Kind: "Service", Count: 7}}
		}
		message := g.message(r, s)
		if strings.ContainsAny(message, "\n\t") || strings.Contains(message, "%!") || strings.Contains(message, "  ") {
			t.Errorf("%s: %q is no paragraph", tc.name, message)
		}
		text.WriteString("# " + tc.name + "\n" + message + "\n\n")
	}
	golden.Compare(t, "messages.txt", text.String())
}
