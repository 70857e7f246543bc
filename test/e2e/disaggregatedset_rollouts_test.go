// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rolloutsOfRoles runs what upstream shows of DisaggregatedSets on simulated nodes: three roles in two slices with
// labels and placement, limits in percent, a change in mid-rollout, and an autoscaler of a role.
func rolloutsOfRoles(k *kubectl) {
	k.slicesOfThreeRoles()
	k.percentages()
	k.changeDuringRollout()
	k.autoscaledRole()
}

const threeRoles = `apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: llm}
spec:
  slices: 2
  placementPolicy: {type: ExclusiveSlice, topology: kubernetes.io/os}
  roles:
  - name: encode
    spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: main, image: a}]}}}}
  - name: prefill
    metadata: {labels: {team: a}, annotations: {note: b}}
    spec: {replicas: 2, leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: main, image: a}]}}}}
  - name: decode
    spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: main, image: a}]}}}}
`

// slicesOfThreeRoles looks at all children of a set.
func (k *kubectl) slicesOfThreeRoles() {
	k.Helper()
	// The domain of the placement is one that all nodes share, so that one slice fits: the other one waits, as it must.
	k.okIn(strings.Replace(threeRoles, "ExclusiveSlice", "None", 1), "apply", "-f", "-")
	k.untilRoles("encode 2 2 2, prefill 4 4 4, decode 4 4 4")
	revision := k.field("lws", `{.items[0].metadata.labels.disaggregatedset\.x-k8s\.io/revision}`)
	var want, services []string
	for _, slice := range []string{"0", "1"} {
		for _, role := range []string{"decode", "encode", "prefill"} {
			name := "llm-" + slice + "-" + revision + "-" + role
			want, services = append(want, name+" llm "+role+" "+slice+" llm-"+slice+"-"+role), append(services, name+"-prv")
		}
	}
	const labels = `{range .items[*]}{.metadata.name} {.metadata.labels.disaggregatedset\.x-k8s\.io/name} {.metadata.labels.disaggregatedset\.x-k8s\.io/role} ` +
		`{.metadata.labels.disaggregatedset\.x-k8s\.io/slice} {.metadata.labels.app}{"\n"}{end}`
	if got := strings.Fields(strings.ReplaceAll(k.field("lws", labels), " ", "|")); !slices.Equal(got, strings.Fields(strings.ReplaceAll(strings.Join(want, "\n"), " ", "|"))) {
		k.Errorf("LeaderWorkerSets %q, want %q", got, want)
	}
	if got := strings.Fields(k.ok("get", "services", "-l", "disaggregatedset.x-k8s.io/name=llm", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)); !slices.Equal(got, services) {
		k.Errorf("Services %q, want %q", got, services)
	}
	prefill := "lws/llm-1-" + revision + "-prefill"
	if got := k.field(prefill, "{.metadata.labels.team} {.metadata.annotations.note} {.metadata.ownerReferences[0].kind}"); got != "a b DisaggregatedSet" {
		k.Errorf("%s has %s", prefill, got)
	}
	// The Service of a role and slice selects exactly its pods.
	selector := k.field("service/llm-1-"+revision+"-decode-prv", "{.spec.selector}")
	pods := k.ok("get", "pods", "-o", "name", "-l", strings.NewReplacer("{", "", "}", "", `"`, "", ":", "=").Replace(selector))
	if n := strings.Count(pods, "\n"); n != 4 {
		k.Errorf("the Service of decode selects %d pods, want 4:\n%s", n, pods)
	}
	if r := k.run(strings.Replace(threeRoles, "replicas: 2,", "replicas: 2, rolloutStrategy: {rollingUpdateConfiguration: {partition: 1}},", 1), "apply", "-f", "-"); r.code == 0 ||
		!strings.Contains(r.stderr, "spec.roles[1].spec.rolloutStrategy.rollingUpdateConfiguration.partition: Forbidden") {
		k.Errorf("a partition: %s", r.stderr)
	}
	k.okIn(strings.Replace(strings.Replace(threeRoles, "slices: 2", "slices: 1", 1), "image: a", "image: b", 3), "apply", "-f", "-")
	k.untilRoles("encode 1 1 1, prefill 2 2 2, decode 2 2 2")
	terms := k.ok("get", "pods", "-l", "disaggregatedset.x-k8s.io/role=encode", "-o", "jsonpath={.items[0].spec.affinity}")
	for _, want := range []string{`"podAffinity"`, `"podAntiAffinity"`, `"topologyKey":"kubernetes.io/os"`, `"values":["0"]`} {
		if !strings.Contains(terms, want) {
			k.Errorf("no %s in the affinity %s", want, terms)
		}
	}
	k.removed("llm")
}

// removed deletes a set and waits until nothing of it is left.
func (k *kubectl) removed(name string) {
	k.Helper()
	k.ok("delete", "disaggregatedset", name)
	k.eventually(func() string {
		if got := k.ok("get", "lws,services,dsrs,statefulsets,pods", "-o", "name", "-l", "disaggregatedset.x-k8s.io/name="+name); got != "" {
			return "children are left: " + got
		}
		return ""
	})
}

// groups returns how many groups each role has of each image, by role and image.
func (k *kubectl) groups() map[string]int {
	k.Helper()
	text := k.field("lws", `{range .items[*]}{.metadata.labels.disaggregatedset\.x-k8s\.io/role} {.spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].image} {.spec.replicas}{"\n"}{end}`)
	out := map[string]int{}
	for line := range strings.Lines(text) {
		var role, image string
		var n int
		if _, err := fmt.Sscan(line, &role, &image, &n); err != nil {
			k.Fatalf("reading %q: %v", line, err)
		}
		out[role+" "+image] += n
	}
	return out
}

// percentages rolls a set whose limits are shares of its replicas: 4 groups, two more and one fewer.
func (k *kubectl) percentages() {
	k.Helper()
	limited := func(image string) string {
		return strings.ReplaceAll(roles(image, "prefill=4", "decode=4"), "      replicas: 4\n",
			"      replicas: 4\n      rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 50%, maxUnavailable: 25%}}\n")
	}
	k.okIn(limited("a"), "apply", "-f", "-")
	k.untilRoles("prefill 4 4 4, decode 4 4 4")
	k.okIn(limited("b"), "apply", "-f", "-")
	peak := 0
	k.eventually(func() string {
		groups := k.groups()
		for _, role := range []string{"prefill", "decode"} {
			total := groups[role+" a"] + groups[role+" b"]
			if peak = max(peak, total); total < 3 || total > 6 {
				k.T.Fatalf("role %s has %d groups, want from 3 to 6: %v", role, total, groups)
			}
		}
		if groups["prefill a"]+groups["decode a"] > 0 || groups["prefill b"]+groups["decode b"] != 8 {
			return fmt.Sprintf("groups are %v", groups)
		}
		return ""
	})
	steps := k.ok("get", "events", "--field-selector", "involvedObject.name=llm,reason=ScalingUp", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
	if !regexp.MustCompile(`from 0 to 2 replicas`).MatchString(steps) {
		k.Errorf("no step of two groups in\n%s", steps)
	}
	k.untilRoles("prefill 4 4 4, decode 4 4 4")
	k.removed("llm")
}

// changeDuringRollout changes a set from a to b and, on the way, to c: b is drained before a.
func (k *kubectl) changeDuringRollout() {
	k.Helper()
	k.okIn(roles("a", "prefill=4", "decode=4"), "apply", "-f", "-")
	k.untilRoles("prefill 4 4 4, decode 4 4 4")
	k.okIn(roles("b", "prefill=4", "decode=4"), "apply", "-f", "-")
	k.eventually(func() string {
		if groups := k.groups(); groups["prefill b"] == 0 || groups["decode b"] == 0 {
			return fmt.Sprintf("groups are %v", groups)
		}
		return ""
	})
	k.okIn(roles("c", "prefill=4", "decode=4"), "apply", "-f", "-")
	before := map[string]int{}
	k.eventually(func() string {
		groups := k.groups()
		if _, begun := groups["prefill c"]; !begun {
			return fmt.Sprintf("groups are %v", groups)
		}
		for _, role := range []string{"prefill a", "decode a"} {
			first, seen := before[role]
			if !seen {
				before[role] = groups[role]
			} else if groups[role] < first && groups[strings.Replace(role, " a", " b", 1)] > 0 {
				k.T.Fatalf("%s has %d of %d groups while b has some: %v", role, groups[role], first, groups)
			}
		}
		if groups["prefill c"] != 4 || groups["decode c"] != 4 || len(groups) != 2 {
			return fmt.Sprintf("groups are %v", groups)
		}
		return ""
	})
	k.untilRoles("prefill 4 4 4, decode 4 4 4")
	k.removed("llm")
}

// autoscaledRole has an autoscaler that wants no fewer than three groups.
func (k *kubectl) autoscaledRole() {
	k.Helper()
	k.okIn(roles("a", "prefill=1", "decode=External")+`---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: decode}
spec:
  scaleTargetRef: {apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSetRoleScaler, name: llm-decode}
  minReplicas: 3
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`, "apply", "-f", "-")
	k.untilRoles("prefill 1 1 1, decode 3 3 3")
	// The role keeps what the autoscaler has decided through a rollout.
	k.okIn(roles("b", "prefill=1", "decode=External"), "apply", "-f", "-")
	k.untilRoles("prefill 1 1 1, decode 3 3 3")
	k.ok("delete", "hpa", "decode")
	k.removed("llm")
}
