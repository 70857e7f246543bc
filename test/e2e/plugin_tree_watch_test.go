// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPluginTreeWatch follows a set from its creation to its deletion, into a file.
func TestPluginTreeWatch(t *testing.T) {
	tier.OnRequest(t, "follows a set in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "apply", "-f", "-")
	watch := k.follow("tree", "train", "-w")
	watch.shows("Suspended")
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	watch.shows("pod/train-workers-1-0-")
	watch.shows("Running")
	k.ok("delete", "jobset", "train", "--cascade=foreground")
	watch.shows("jobset/train was deleted.")
	watch.ends()
	if r := k.plugin("tree", "train", "-w"); r.code != 1 || !strings.Contains(r.stderr, "not found") {
		t.Errorf("no such set: exit code %d, %q", r.code, r.stderr)
	}
}
