// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
)

// TestCommandsOfTheDocumentation runs the commands of docs/operations/migrate.md in their order. Those that create Jobs need real
// nodes.
func TestCommandsOfTheDocumentation(t *testing.T) {
	o := begin(t, 2, 1)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, line := range runbook.Lines(t, filepath.Join(cluster.Root, "docs", "operations", "migrate.md"), "") {
		args, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl jobset migrate ")
		if !found || strings.Contains(args, "--in-cluster") {
			continue
		}
		ran++
		if out := migrate(t, strings.Fields(args)...); strings.Contains(out, "There is nothing to move") {
			t.Errorf("%s had nothing to do", line)
		}
		o.unchanged(t, line)
	}
	if ran < 5 {
		t.Errorf("the page has %d commands, want at least one of each kind", ran)
	}
	o.works(t)
}
