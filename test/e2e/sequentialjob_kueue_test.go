// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestKindsOfKueueRefuse checks that the kinds which the tests of queues use have the limits of Kueue's: what these tests may write, Kueue
// would accept.
func TestKindsOfKueueRefuse(t *testing.T) {
	tier.OnRequest(t, "installs the definitions of Kueue for the whole cluster")
	k := newKubectl(t)
	s := withKueue(k)
	s.Hold("no room")
	workload := func(name string, sets int) string {
		out := fmt.Sprintf("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: %s}\nspec:\n  queueName: team\n  podSets:\n", name)
		for i := range sets {
			out += fmt.Sprintf("  - {name: set-%d, count: 1, template: {spec: {containers: [{name: main, ports: [{containerPort: 80}]}]}}}\n", i)
		}
		return out
	}
	k.refused(workload("many", 19), []string{"create", "-f", "-"}, "spec.podSets", "at most 18")
	k.okIn(workload("w", 18), "create", "-f", "-")
	if got := k.field("workload/w", "{.spec.active} {.spec.podSets[0].template.spec.containers[0].ports[0].protocol}"); got != "true TCP" {
		t.Errorf("defaults: %s", got)
	}
	patch := func(text string) []string { return []string{"patch", "workload", "w", "--type=merge", "-p", text} }
	status := func(text string) []string { return append(patch(text), "--subresource=status") }
	reserved := `{"status":{"admission":{"clusterQueue":"all"},"conditions":[{"type":"QuotaReserved","status":"True","reason":"QuotaReserved","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	k.ok(patch(`{"spec":{"queueName":"other"}}`)...)
	k.ok(status(reserved)...)
	k.refused("", patch(`{"spec":{"queueName":"team"}}`), "spec.queueName is immutable while quota is reserved")
	k.refused("", status(`{"status":{"admission":{"clusterQueue":"another"}}}`), "status.admission is immutable while quota is reserved")
	k.refused("", status(`{"status":{"conditions":[{"type":"Admitted","status":"True"}]}}`), "status.conditions[0].reason")
	sets := `{"spec":{"podSets":[{"name":"set-0","count":2,"template":{"spec":{"containers":[{"name":"main"}]}}}]}}`
	k.eventually(func() string { // the policy takes a moment
		if r := k.run("", append(patch(sets), "--dry-run=server")...); !strings.Contains(r.stderr, "spec.podSets is immutable while quota is reserved") {
			return "a change of pod sets with quota: " + r.stdout + r.stderr
		}
		return ""
	})
	k.ok(patch(`{"spec":{"active":false}}`)...)
}
