// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// plugin calls `kubectl jobset` in the namespace of the test and returns what it did, whatever that is.
func (k *kubectl) plugin(args ...string) result {
	k.Helper()
	return k.pluginIn("", args...)
}

// pluginOK is plugin for a call that must succeed; it returns what was printed.
func (k *kubectl) pluginOK(args ...string) string {
	k.Helper()
	r := k.plugin(args...)
	if r.code != 0 {
		k.Fatalf("kubectl jobset %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// pluginIn is plugin with text on the standard input, for `-f -`.
func (k *kubectl) pluginIn(stdin string, args ...string) result {
	k.Helper()
	// kubectl takes no flags before the name of a plugin.
	return k.withPlugins(stdin, append([]string{"jobset", "--namespace=" + k.namespace}, args...)...)
}

// withPlugins calls the kubectl of the cluster so that it finds our plugin.
func (k *kubectl) withPlugins(stdin string, args ...string) result {
	k.Helper()
	return k.call(stdin, []string{"PATH=" + k.pluginPath()}, args...)
}

// pluginPath makes kubectl find the programs under test.
func (k *kubectl) pluginPath() string {
	return strings.Join([]string{filepath.Dir(k.cluster.Program("kubectl-jobset")), filepath.Join(k.cluster.Root, "artifacts", "kubectl"), os.Getenv("PATH")}, string(os.PathListSeparator))
}

func TestPluginIsFoundByKubectl(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	if got := k.withPlugins("", "plugin", "list"); !strings.Contains(got.stdout, "kubectl-jobset") {
		t.Errorf("kubectl plugin list does not show the plugin:\n%s%s", got.stdout, got.stderr)
	}
	if got := k.pluginOK("--help"); !strings.Contains(got, "kubectl jobset") {
		t.Errorf("the help does not name the command as users call it:\n%s", got)
	}
}

func TestPluginCompletesNames(t *testing.T) {
	tier.OnRequest(t, "more cases of the plugin")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train-a", runOn, "suspend: true")+"---\n"+manifest("train-b", runOn, "suspend: true")+"---\n"+manifest("other", runOn, "suspend: true"), "apply", "-f", "-")
	for name, tc := range map[string]struct {
		words []string
		want  []string
	}{
		"names of JobSets":         {words: []string{"tree", "tr"}, want: []string{"train-a", "train-b", ":4"}},
		"names after the resource": {words: []string{"tree", "jobset/o"}, want: []string{"jobset/other", ":4"}},
		"nothing after a name":     {words: []string{"tree", "train-a", ""}, want: []string{":4"}},
		"replicatedJobs":           {words: []string{"logs", "train-a", "--replicated-job", ""}, want: []string{"workers", ":36"}},
		"indices of Jobs":          {words: []string{"restart", "train-a", "--replicated-job=workers", "--job-index", ""}, want: []string{"0", "1", ":36"}},
		"containers":               {words: []string{"logs", "train-a", "-c", ""}, want: []string{"main", ":36"}},
		"namespaces":               {words: []string{"tree", "-n", "kube-s"}, want: []string{"kube-system", ":4"}},
		"names of commands":        {words: []string{"tre"}, want: []string{"tree", ":4"}},
		"formats, not files, after -o": {words: []string{"tree", "train-a", "-o", ""}, want: []string{
			"json", "yaml", "kyaml", "go-template", "go-template-file", "template", "templatefile", "jsonpath", "jsonpath-as-json", "jsonpath-file", ":4"}},
	} {
		t.Run(name, func(t *testing.T) {
			// What kubectl's own completion calls: the words after "kubectl", the last of them unfinished.
			words := append([]string{"__completeNoDesc", "jobset", "--namespace=" + k.namespace}, tc.words...)
			got := strings.Split(strings.TrimSpace(k.withPlugins("", words...).stdout), "\n")
			for i := range got {
				got[i], _, _ = strings.Cut(got[i], "\t")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
		})
	}
}
