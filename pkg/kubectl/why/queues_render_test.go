// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// TestRenderQueues shows the whole report about a JobSet in each state of a queue, of one cluster or of several.
func TestRenderQueues(t *testing.T) {
	var out strings.Builder
	cases := kueueCases()
	maps.Copy(cases, multiKueueCases())
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		fmt.Fprintf(&out, "== %s\n", name)
		if err := render(&out, cli.JobSet, Diagnose(cases[name].evidence), cli.Terminal{Width: 120}, now); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "why-queues.txt", out.String())
}
