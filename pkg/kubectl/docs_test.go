// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl"
)

// documentation returns the sections of docs/kubectl.md by their headings, and what comes before the first.
func documentation(t *testing.T) (head string, sections map[string]string) {
	t.Helper()
	content, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	sections = map[string]string{}
	for i, part := range strings.Split("\n"+string(content), "\n## ") {
		if i == 0 {
			head = part
			continue
		}
		heading, text, _ := strings.Cut(part, "\n")
		sections[heading] = text
	}
	return head, sections
}

// commands are the commands that users see, by name.
func commands(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	for _, cmd := range kubectl.NewCommand(genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		if cmd.IsAvailableCommand() {
			all[cmd.Name()] = cmd
		}
	}
	return all
}

var longFlag = regexp.MustCompile(`--([a-z-]+)`)

func TestEachCommandIsDocumented(t *testing.T) {
	head, sections := documentation(t)
	all := commands(t)
	for name, cmd := range all {
		if !strings.Contains(head, "(#kubectl-jobset-"+name+")") {
			t.Errorf("the table of commands has no link to %s", name)
		}
		text, found := sections["kubectl jobset "+name]
		if !found {
			t.Errorf("docs/kubectl.md has no section about %s", name)
			continue
		}
		synopsis, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
		for _, line := range strings.Split(synopsis, "\n") {
			if !strings.HasPrefix(line, "    kubectl jobset "+name) {
				t.Errorf("%s: the section must begin with the synopsis, indented by four spaces, not with %q", name, line)
			}
		}
		for _, flag := range longFlag.FindAllStringSubmatch(synopsis, -1) {
			if cmd.Flags().Lookup(flag[1]) == nil && cmd.InheritedFlags().Lookup(flag[1]) == nil {
				t.Errorf("%s: the synopsis has the flag --%s, which the command has not", name, flag[1])
			}
		}
	}
	var unknown []string
	for heading := range sections {
		if name, is := strings.CutPrefix(heading, "kubectl jobset "); is && all[name] == nil {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	if diff := cmp.Diff([]string(nil), unknown); diff != "" {
		t.Errorf("sections about commands that do not exist (-want +got):\n%s", diff)
	}
}

func TestEachCommandHasHelp(t *testing.T) {
	for name, cmd := range commands(t) {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "kubectl jobset "+name) {
			t.Errorf("%s has no short or long description, or no example", name)
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short description ends with a period", name)
		}
	}
}
