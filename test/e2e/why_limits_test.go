// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// A user with few permissions still gets an answer, with a list of what is missing.
func TestWhySkipsForbiddenSources(t *testing.T) {
	tier.OnRequest(t, "more cases of why")
	t.Parallel()
	k := newKubectl(t)
	makes(podSpecs(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"example.com/gpu": "h900"} }))(k)
	k.whyFirst(why.UnschedulableAffinity)
	k.ok("create", "serviceaccount", "viewer")
	k.okIn(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules:
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get]}
- {apiGroups: [batch], resources: [jobs], verbs: [list]}
- {apiGroups: [""], resources: [pods], verbs: [list]}
`, "create", "-f", "-")
	k.ok("create", "rolebinding", "viewer", "--role=viewer", "--serviceaccount="+k.namespace+":viewer")
	limited := k.as(strings.TrimSpace(k.ok("create", "token", "viewer")))
	k.eventually(func() string { return limited.plugin("why", "train").stderr })

	report := limited.why("train")
	if got := report.Findings[0].Cause; got != why.UnschedulableAffinity {
		t.Errorf("the first cause is %s, want %s", got, why.UnschedulableAffinity)
	}
	var sources []string
	for _, gap := range report.NotLookedAt {
		sources = append(sources, gap.Source+" "+gap.Reason)
	}
	want := []string{"apiservices forbidden", "events forbidden", "leases forbidden", "nodes forbidden", "services forbidden"}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("what was not looked at (-want +got):\n%s", diff)
	}
	if text := limited.pluginOK("why", "train"); !strings.Contains(text, "not looked at: apiservices (forbidden), events (forbidden)") {
		t.Errorf("the text does not say what is left out:\n%s", text)
	}
	k.ok("delete", "rolebinding", "viewer")
	k.eventually(func() string {
		if r := limited.plugin("why", "train"); r.code == 0 || !strings.Contains(r.stderr, "forbidden") {
			return "no refusal: " + r.stdout + r.stderr
		}
		return ""
	})
}

func TestWhyRefusesWrongUsage(t *testing.T) {
	tier.OnRequest(t, "more cases of why")
	t.Parallel()
	k := newKubectl(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no name":           {[]string{"why"}, "NAME: give the name of a JobSet"},
		"two names":         {[]string{"why", "a", "b"}, "NAME: must be one JobSet"},
		"another resource":  {[]string{"why", "pod/a"}, "NAME: must be a JobSet"},
		"an unknown format": {[]string{"why", "a", "-o", "xml"}, `unable to match a printer suitable for the output format "xml"`},
	} {
		t.Run(name, func(t *testing.T) {
			if r := k.plugin(tc.args...); r.code != 1 || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("code %d, message %q, want one line with %q", r.code, r.stderr, tc.want)
			}
		})
	}
}

// A set that does not exist is an error for scripts, with an answer for people.
func TestWhyFailsForMissingSet(t *testing.T) {
	tier.OnRequest(t, "more cases of why")
	t.Parallel()
	k := newKubectl(t)
	r := k.plugin("why", "js/nothing", "-o", "json")
	var report why.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.code != 1 || report.State != "NotFound" {
		t.Errorf("code %d, state %q, %v", r.code, report.State, err)
	}
}
