// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl"
)

// output is what the plugin prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := kubectl.NewCommand(streams)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGlobalFlagsAreListedByOptions(t *testing.T) {
	list := output(t, "options")
	for _, flag := range []string{"--namespace", "--context", "--kubeconfig", "--as", "--request-timeout", "--ascii", "-v, --v"} {
		if !strings.Contains(list, flag) {
			t.Errorf("options does not list %s:\n%s", flag, list)
		}
	}
	for _, args := range [][]string{{"--help"}, {"tree", "--help"}, {"restart", "--help"}} {
		help := output(t, args...)
		if strings.Contains(help, "--kubeconfig") || strings.Contains(help, "Global Flags") {
			t.Errorf("%v lists the flags of all commands:\n%s", args, help)
		}
		if !strings.Contains(help, `Use "kubectl jobset options" for a list of the flags that all commands take.`) {
			t.Errorf("%v does not name the command that lists them:\n%s", args, help)
		}
	}
	if help := output(t, "tree", "--help"); !strings.Contains(help, "--all ") || !strings.Contains(help, "kubectl jobset tree NAME") {
		t.Errorf("the help of tree lacks its own flags or its usage:\n%s", help)
	}
	if help := output(t, "options", "--help"); strings.Contains(help, `Use "kubectl jobset options"`) {
		t.Errorf("the help of options names itself:\n%s", help)
	}
}

// TestFlagsSuggestNoFiles completes every flag with a value. A shell suggests files for those that have no completion.
func TestFlagsSuggestNoFiles(t *testing.T) {
	files := map[string]bool{
		"filename": true, "kustomize": true, "file": true, "kubeconfig": true, "template": true, "cache-dir": true, "certificate-authority": true, "client-certificate": true, "client-key": true,
	}
	root := kubectl.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	for _, cmd := range append(root.Commands(), root) {
		check := func(flag *pflag.Flag) {
			if _, found := cmd.GetFlagCompletionFunc(flag.Name); found == files[flag.Name] && flag.NoOptDefVal == "" {
				t.Errorf("%s --%s has a completion: %v", cmd.Name(), flag.Name, found)
			}
		}
		cmd.LocalFlags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
	}
}

func TestCompletionsOfGlobalFlags(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncontexts: [{name: staging, context: {}}, {name: production, context: {}}]\nclusters: [{name: east, cluster: {}}]\nusers: [{name: alice, user: {}}]\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string][]string{"context": {"production", "staging", ":4"}, "cluster": {"east", ":4"}, "user": {"alice", ":4"}, "as": {":4"}} {
		got := strings.Fields(output(t, "__completeNoDesc", "tree", "--kubeconfig="+config, "--"+flag, ""))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("--%s (-want +got):\n%s", flag, diff)
		}
	}
}
