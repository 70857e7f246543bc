// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// memberHistories are the kinds of faults in which a server or a member can answer with what is not true any more.
var memberHistories = []string{"kill", "outage", "pause", "volume", "partition", "loss", "stall"}

// TestEmbeddedMembersHistoriesUnderFaults is TestHistoriesUnderFaults for servers that run the members of their etcd.
func TestEmbeddedMembersHistoriesUnderFaults(t *testing.T) {
	tier.OnRequest(t, "histories of three servers with embedded members under faults")
	e := useEmbedded(t)
	faults := slices.DeleteFunc(slices.Clone(memberFaults), func(f memberFault) bool { return !slices.Contains(memberHistories, f.kind) })
	if histories() == 0 {
		faults = slices.DeleteFunc(faults, func(f memberFault) bool { return f.kind != "kill" && f.kind != "partition" && f.kind != "loss" })
		faults = sample.Kinds(t, faults, func(f memberFault) string { return f.kind })
	}
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "-"), func(t *testing.T) {
			e.skipWithoutRoot(t, fault)
			for i := range max(1, histories()) {
				checkedHistory(t, fault.name, *seed+uint64(i), func(ctx context.Context) error {
					if err := fault.happen(ctx, e); err != nil {
						return err
					}
					return e.recovered(ctx)
				})
				e.bystander.untouched(t, fault.name)
			}
		})
	}
}
