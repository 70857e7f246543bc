// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestDisaggregatedSet runs what takes long.
func TestDisaggregatedSet(t *testing.T) {
	tier.OnRequest(t, "starts many rollouts")
	t.Parallel()
	c := gated.use(t)
	for name, test := range map[string]func(*kubectl){"rollouts": rolloutsOfRoles, "orphans": orphansOfRoles} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newKubectlFor(t, c))
		})
	}
}

func TestDisaggregatedSetLives(t *testing.T) {
	t.Parallel()
	lifeOfRoles(newKubectl(t))
}

// lifeOfRoles runs a set through its life on simulated nodes: two roles, a coordinated rollout, a scaler, a further
// role, the removal of one, and the deletion of all.
func lifeOfRoles(k *kubectl) {
	k.okIn(roles("a", "prefill=3", "decode=2"), "apply", "-f", "-")
	k.untilRoles("prefill 3 3 3, decode 2 2 2")
	first := k.field("lws", "{.items[0].metadata.labels.disaggregatedset\\.x-k8s\\.io/revision}")
	if got, want := k.ok("get", "services", "-o", "name", "-l", "disaggregatedset.x-k8s.io/name=llm"),
		fmt.Sprintf("service/llm-0-%[1]s-decode-prv\nservice/llm-0-%[1]s-prefill-prv\n", first); got != want {
		k.Errorf("Services: %s, want %s", got, want)
	}

	k.whyRoles()

	k.okIn(roles("b", "prefill=3", "decode=2"), "apply", "-f", "-")
	k.rollout(first, map[string]int{"prefill": 3, "decode": 2})
	k.untilRoles("prefill 3 3 3, decode 2 2 2")
	k.eventually(func() string {
		if got := k.ok("get", "lws,services", "-o", "name", "-l", "disaggregatedset.x-k8s.io/revision="+first); got != "" {
			return "the former revision is left with " + got
		}
		return ""
	})

	k.okIn(roles("b", "prefill=3", "decode=External"), "apply", "-f", "-")
	k.eventually(func() string { return k.hasNot("dsrs/llm-decode", "{.status.replicas}", "2") })
	if got, want := k.ok("get", "--raw", "/apis/disaggregatedset.x-k8s.io/v1/namespaces/"+k.namespace+"/disaggregatedsetrolescalers/llm-decode/scale"), `"spec":{"replicas":2}`; !strings.Contains(got, want) {
		k.Errorf("scale: %s, want %s", got, want)
	}
	k.ok("scale", "dsrs", "llm-decode", "--replicas=4")
	k.untilRoles("prefill 3 3 3, decode 4 4 4")

	k.okIn(roles("b", "prefill=3", "decode=External", "encode=1"), "apply", "-f", "-")
	k.untilRoles("prefill 3 3 3, decode 4 4 4, encode 1 1 1")
	k.okIn(roles("b", "prefill=3", "encode=1"), "apply", "-f", "-")
	k.untilRoles("prefill 3 3 3, encode 1 1 1")
	k.eventually(func() string {
		if got := k.ok("get", "dsrs", "-o", "name"); got != "" {
			return "the scaler is left: " + got
		}
		return ""
	})

	k.ok("delete", "disaggregatedset", "llm")
	k.eventually(func() string {
		if got := k.ok("get", "lws,services,statefulsets,pods", "-o", "name", "-l", "disaggregatedset.x-k8s.io/name=llm"); got != "" {
			return "children are left: " + got
		}
		return ""
	})
}

// whyRoles asks the plugin why a set is as it is: one that runs, one whose role is larger than a quota of pods allows,
// and one that does not exist.
func (k *kubectl) whyRoles() {
	k.Helper()
	k.groupsView([]string{"why", "dset/llm"}, "2/2 roles ready, 5/5 groups ready", "Running", "runs: ready groups of roles: prefill 3/3, decode 2/2")
	k.groupsView([]string{"why", "llm"}, "disaggregatedset "+k.namespace+"/llm") // a name alone
	k.ok("create", "quota", "few", "--hard=pods=10")
	k.untilRefused("pod", "exceeded quota: few") // the ten pods of the set use it up
	k.okIn(roles("a", "prefill=3", "decode=3"), "apply", "-f", "-")
	k.groupsView([]string{"why", "dset/llm"}, "1/2 roles ready, 5/6 groups ready", "PodsRefusedByQuota", "role decode (lws/llm-0-", "quota few")
	k.ok("delete", "quota", "few")
	k.okIn(roles("a", "prefill=3", "decode=2"), "apply", "-f", "-")
	k.untilRoles("prefill 3 3 3, decode 2 2 2")
	if r := k.plugin("why", "dset/lln"); r.code != 1 || !strings.Contains(r.stdout, "dset/llm exists and has a similar name") {
		k.Errorf("why of a set that does not exist: exit code %d, %s", r.code, r.stdout)
	}
}

// roles returns the manifest of a set whose roles have so many groups of two pods, or are scaled by others.
func roles(image string, sizes ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: disaggregatedset.x-k8s.io/v1\nkind: DisaggregatedSet\nmetadata: {name: llm}\nspec:\n  roles:\n")
	for _, size := range sizes {
		name, replicas, _ := strings.Cut(size, "=")
		scaling := ""
		if replicas == "External" {
			replicas, scaling = "1", "\n    scaling: {mode: External}"
		}
		fmt.Fprintf(&b, `  - name: %s%s
    spec:
      replicas: %s
      leaderWorkerTemplate:
        size: 2
        workerTemplate:
          spec:
            containers: [{name: main, image: %s}]
`, name, scaling, replicas, image)
	}
	return b.String()
}

// untilRoles waits until the set is available, and each role has so many groups, that many of them ready, and updated.
func (k *kubectl) untilRoles(want string) {
	k.Helper()
	k.untilRolesOf("llm", want)
}

// untilRolesOf is untilRoles for the set of that name.
func (k *kubectl) untilRolesOf(set, want string) {
	k.Helper()
	object := "disaggregatedset/" + set
	k.eventually(func() string {
		return k.hasNot(object, `{range .status.roleStatuses[*]}{.name} {.replicas} {.readyReplicas} {.updatedReplicas}, {end}`+
			`{.status.conditions[?(@.type=="Available")].status} {.metadata.generation}={.status.observedGeneration}`,
			want+", True "+k.field(object, "{.metadata.generation}={.metadata.generation}"))
	})
}

// rollout follows a rollout until the former revision has no groups, and checks each state that it sees: no role has
// more than one group above its replicas, and none less than its replicas.
func (k *kubectl) rollout(former string, targets map[string]int) {
	k.Helper()
	k.eventually(func() string {
		text := k.field("lws", `{range .items[*]}{.metadata.labels.disaggregatedset\.x-k8s\.io/role} {.metadata.labels.disaggregatedset\.x-k8s\.io/revision} {.spec.replicas}{"\n"}{end}`)
		total, left := map[string]int{}, 0
		for line := range strings.Lines(text) {
			var role, revision string
			var n int
			if _, err := fmt.Sscan(line, &role, &revision, &n); err != nil {
				k.Fatalf("reading %q: %v", line, err)
			}
			total[role] += n
			if revision == former {
				left += n
			}
		}
		for role, target := range targets {
			if total[role] < target || total[role] > target+1 { // with k.T, which ends the test: k would only repeat the check
				k.T.Fatalf("role %s has %d groups, want from %d to %d:\n%s", role, total[role], target, target+1, text)
			}
		}
		if left > 0 {
			return fmt.Sprintf("the former revision has %d groups", left)
		}
		return ""
	})
	k.eventually(func() string {
		steps := k.ok("get", "events", "--field-selector", "involvedObject.name=llm,reason=ScalingUp", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
		for _, want := range []string{"from 0 to 1", "from 1 to 2", "from 2 to 3"} {
			if !strings.Contains(steps, want) {
				return fmt.Sprintf("no step %s in %s", want, steps)
			}
		}
		return ""
	})
}
