// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// stepLimit ends a step of a page that hangs. Its commands wait for at most two minutes each.
const stepLimit = 5 * time.Minute

// replacedSteps are the commands of the pages that the tests do not run. The shared cluster takes the place of the one that
// `make up` starts and `make down` removes, and a namespace of the test that of `default`. TestMain calls the same hack/cluster.sh.
var replacedSteps = []string{
	"make up",
	"export KUBECONFIG=$PWD/.cluster/kubeconfig\nexport PATH=$PWD/bin:$(hack/ensure-binaries.sh):$PATH",
	"make down",
}

// TestTutorial follows the pages for newcomers word by word (followPage).
func TestTutorial(t *testing.T) {
	tier.OnRequest(t, "follows pages in real time")
	t.Parallel()
	for _, page := range []string{"tutorial", "jobset", "first-leaderworkerset"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			followPage(t, "docs/"+page+".md")
		})
	}
}

// followPage runs all commands of a page in one shell, in their order, and compares what they print with the page. What differs from
// run to run stands for any such value (runbook.Step). UPDATE_GOLDEN=1 rewrites the outputs of the page; review it before you commit.
func followPage(t *testing.T, page string) {
	t.Helper()
	k := newKubectl(t)
	k.admitsPods()
	path := filepath.Join(shared.Root, page)
	steps := runbook.Steps(t, path)
	shell := k.shell()
	printed := make([]string, len(steps))
	replaced := 0
	for i, step := range steps {
		if replaced < len(replacedSteps) && step.Commands == replacedSteps[replaced] {
			replaced++
			printed[i] = step.Output
			continue
		}
		got, code := shell.Run(t, stepLimit, step.Commands)
		printed[i] = strings.ReplaceAll(got, k.namespace, "default")
		difference := step.Compare(printed[i])
		switch {
		case code != 0:
			t.Fatalf("%s:%d: exit code %d\n%s\n%s", page, step.Line, code, step.Commands, got)
		case difference == "":
			printed[i] = step.Output
		case os.Getenv("UPDATE_GOLDEN") == "":
			t.Fatalf("%s:%d: other output than in the page\n%s\n%s", page, step.Line, step.Commands, difference)
		}
	}
	if replaced != len(replacedSteps) {
		t.Errorf("%s does not have %q", page, replacedSteps[replaced])
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		runbook.Update(t, path, steps, printed)
	}
}

// logsOfPage is the command of a page that prints logs, and below it what it prints.
var logsOfPage = regexp.MustCompile(`(?m)^    \$ kubectl jobset (logs \S+)\n((?:    \[.*\n)+)`)

// TestLogsOfFirstSets compares the logs that pages for newcomers show with what the plugin prints. Nodes of KWOK have no logs, so the pods of
// the manifests run on a node whose kubelet is a part of the test: it serves for the pods, in the order of their names, the lines of the page.
func TestLogsOfFirstSets(t *testing.T) {
	tier.OnRequest(t, "follows pages in real time")
	t.Parallel()
	for _, name := range []string{"jobset", "first-leaderworkerset"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := "docs/" + name + ".md"
			k := newKubectl(t)
			l := newKubelet(t, k)
			t.Cleanup(func() { k.run("", "delete", "leaderworkersets", "--all", "--timeout=5m") })
			content, err := os.ReadFile(filepath.Join(shared.Root, page))
			if err != nil {
				t.Fatal(err)
			}
			shown := logsOfPage.FindStringSubmatch(string(content))
			_, manifest, found := strings.Cut(string(content), "<<'EOF'\n")
			manifest, _, _ = strings.Cut(manifest, "EOF\n")
			if shown == nil || !found {
				t.Fatalf("%s has no manifest, or no logs", page)
			}
			containers := regexp.MustCompile(`(?m)^( *)containers:\n`).FindStringSubmatch(manifest)
			there := containers[1] + strings.ReplaceAll(l.here(), "\n", "\n"+containers[1]) + "\n"
			k.okIn(strings.Replace(manifest, containers[0], there+containers[0], 1), "apply", "-f", "-")

			want := strings.ReplaceAll(shown[2], "    [", "[")
			lines := strings.Split(strings.TrimSpace(want), "\n")
			var pods []string
			k.eventually(func() string {
				pods = strings.Fields(k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
				if len(pods) != len(lines) {
					return fmt.Sprintf("%d pods run, want %d: %v", len(pods), len(lines), pods)
				}
				return ""
			})
			for i, pod := range pods {
				_, line, _ := strings.Cut(lines[i], "] ")
				l.write(pod, "main", line)
				l.end(pod, "main")
			}
			if diff := cmp.Diff(want, k.pluginOK(strings.Fields(shown[1])...)); diff != "" {
				t.Errorf("%s shows other logs than the plugin (-page +plugin):\n%s", page, diff)
			}
		})
	}
}

// shell starts a shell in the checkout in which kubectl and the plugin use the namespace of the test.
func (k *kubectl) shell() *runbook.Shell {
	k.Helper()
	path := filepath.Dir(kubectlPath(k.T)) + string(os.PathListSeparator) + k.pluginPath()
	return runbook.NewShell(k.T, shared.Root, "KUBECONFIG="+k.named().kubeconfig, "PATH="+path, "LC_ALL=C.UTF-8", "COLUMNS=")
}
