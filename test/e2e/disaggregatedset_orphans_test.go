// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
)

// orphansOfRoles deletes a set without its children, and creates it again: it takes its children back, its pods run on,
// and nothing is created twice. Created again with another template, it rolls what it has taken over.
func orphansOfRoles(k *kubectl) {
	const label = "disaggregatedset.x-k8s.io/name=llm"
	set := roles("a", "prefill=2", "decode=External")
	k.okIn(set, "apply", "-f", "-")
	k.wait("--for=create", "dsrs/llm-decode")
	k.ok("scale", "dsrs", "llm-decode", "--replicas=3")
	k.untilRoles("prefill 2 2 2, decode 3 3 3")
	uids := func(kinds string) string {
		text := k.ok("get", kinds, "-l", label, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`)
		return strings.Join(slices.Sorted(strings.Lines(text)), "")
	}
	const all = "pods,lws,services,dsrs"
	k.eventually(func() string { // the Services are created last
		if n := strings.Count(uids(all), "-prv "); n != 2 {
			return fmt.Sprintf("%d Services, want 2", n)
		}
		return ""
	})
	before := uids(all)
	former := k.field("lws", "{.items[0].metadata.labels.disaggregatedset\\.x-k8s\\.io/revision}")
	k.orphan(label)
	k.okIn(set, "apply", "-f", "-")
	k.controlled(label)
	k.untilRoles("prefill 2 2 2, decode 3 3 3")
	if after := uids(all); after != before {
		k.Errorf("children:\n%s\nbefore:\n%s", after, before)
	}
	events := k.ok("get", "events", "--field-selector=reason=AdoptedChild", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
	for line := range strings.Lines(uids("lws,services,dsrs")) {
		if child := strings.Join(strings.Fields(line)[:2], " "); !strings.Contains(events, child) {
			k.Errorf("no event about %s in:\n%s", child, events)
		}
	}
	if got := k.ok("get", "events", "--field-selector=reason=FailedCreate,involvedObject.name=llm", "-o", "name"); got != "" {
		k.Errorf("creations were refused: %s", got)
	}

	k.orphan(label)
	k.okIn(roles("b", "prefill=2", "decode=External"), "apply", "-f", "-")
	k.rollout(former, map[string]int{"prefill": 2, "decode": 3})
	k.untilRoles("prefill 2 2 2, decode 3 3 3")
	k.controlled(label)
	if got := k.ok("get", "lws,services", "-o", "name", "-l", "disaggregatedset.x-k8s.io/revision="+former); got != "" {
		k.Errorf("the former revision is left with %s", got)
	}
}

// orphan deletes the set without its children, and waits until they have no owner.
func (k *kubectl) orphan(label string) {
	k.Helper()
	k.ok("delete", "disaggregatedset", "llm", "--cascade=orphan")
	if owners := k.owners(label); len(owners) != 1 || owners[0] != "" {
		k.Errorf("owners %q after the deletion", owners)
	}
}

// controlled waits until the set controls all children.
func (k *kubectl) controlled(label string) {
	k.Helper()
	k.eventually(func() string {
		want := k.field("disaggregatedset/llm", "{.metadata.uid}")
		if owners := k.owners(label); len(owners) != 1 || owners[0] != want {
			return fmt.Sprintf("owners %q, want %s", owners, want)
		}
		return ""
	})
}

// owners returns the UIDs of what controls the children; one is empty if something has no owner.
func (k *kubectl) owners(label string) []string {
	k.Helper()
	text := k.ok("get", "lws,services,dsrs", "-l", label, "-o", `jsonpath={range .items[*]}{.metadata.ownerReferences[?(@.controller==true)].uid}{"\n"}{end}`)
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(all)
	return slices.Compact(all)
}
