// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPluginListAgreesWithGet compares the list with `kubectl get -o wide`.
func TestPluginListAgreesWithGet(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn)+"---\n"+manifest("eval", runOn, "suspend: true"), "apply", "-f", "-")
	k.ok("label", "jobset", "eval", "kueue.x-k8s.io/queue-name=gpu")
	k.eventually(func() string {
		if got := k.pluginOK("list", "--phase=Running", "-o", "jsonpath={.items[*].name}"); got != "train" {
			return "running: " + got
		}
		return ""
	})
	wide := k.ok("get", "jobsets", "-o", `custom-columns=NAME:.metadata.name`, "--no-headers")
	if got := k.pluginOK("list", "js", "-o", "jsonpath={range .items[*]}{.name}{'\\n'}{end}"); got != wide {
		t.Errorf("names: list %q, get %q", got, wide)
	}
	column := func(text, title string) (cells []string) {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		at := strings.Index(lines[0], title)
		for _, line := range lines[1:] {
			cells = append(cells, strings.Fields(line[at:] + " ")[0])
		}
		return cells
	}
	get, list := k.ok("get", "jobsets", "-o", "wide"), k.pluginOK("list", "js")
	for _, title := range []string{"PHASE", "READY", "ATTEMPT"} {
		if diff := cmp.Diff(column(get, title), column(list, title)); diff != "" {
			t.Errorf("%s (-get +list):\n%s\n%s\n%s", title, diff, get, list)
		}
	}
	if got := k.pluginOK("list", "--queue=gpu", "-o", "jsonpath={.items[*].name}"); got != "eval" {
		t.Errorf("in the queue: %q", got)
	}
	if got := k.pluginOK("list", "-A", "-l", "kueue.x-k8s.io/queue-name=gpu"); !strings.Contains(got, k.namespace) {
		t.Errorf("of all namespaces:\n%s", got)
	}
	if r := k.plugin("list", "jobsets", "--phase=Failed"); r.code != 0 || !strings.Contains(r.stderr, "No JobSets found that match in namespace "+k.namespace) {
		t.Errorf("nothing matches: exit code %d, %q", r.code, r.stderr)
	}
	if got := k.pluginOK("list"); !strings.Contains(got, "\njs/eval ") {
		t.Errorf("of all kinds:\n%s", got)
	}
	nobody := k.account("nobody", "")
	if r := nobody.plugin("list"); r.code != 1 || !strings.Contains(r.stderr, "cannot list resource") {
		t.Errorf("without access: exit code %d, %q", r.code, r.stderr)
	}
}

// TestPluginListWatchShowsChanges follows a set from its creation to its end.
func TestPluginListWatchShowsChanges(t *testing.T) {
	tier.OnRequest(t, "follows a set in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "apply", "-f", "-")
	watch := k.follow("list", "js", "-w")
	watch.shows("Suspended")
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	watch.shows("Running")
	k.ok("delete", "jobset", "train", "--wait=false")
	watch.shows("Deleted")
	lines := strings.Split(strings.TrimSpace(watch.String()), "\n")
	if !strings.HasPrefix(lines[0], "NAME ") || slices.ContainsFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, "train ") }) {
		t.Errorf("lines: %s", fmt.Sprint(lines))
	}
}
