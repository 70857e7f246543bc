// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// stepLimit ends a step of the tutorial that hangs. Its commands wait for at most two minutes each.
const stepLimit = 5 * time.Minute

// replacedSteps are the commands of the tutorial that the test does not run. The shared cluster takes the place of the one that
// `make up` starts and `make down` removes, and a namespace of the test that of `default`. TestMain calls the same hack/cluster.sh.
var replacedSteps = []string{
	"make up",
	"export KUBECONFIG=$PWD/.cluster/kubeconfig\nexport PATH=$PWD/bin:$(hack/ensure-binaries.sh):$PATH",
	"make down",
}

// TestTutorial follows docs/tutorial.md word by word: it runs all of its commands in one shell, in their order, and compares what they
// print with the page. What differs from run to run stands for any such value (runbook.Step). UPDATE_GOLDEN=1 rewrites the outputs of the
// page; review it before you commit.
func TestTutorial(t *testing.T) {
	tier.OnRequest(t, "follows the tutorial in real time")
	t.Parallel()
	k := newKubectl(t)
	k.admitsPods()
	path := filepath.Join(shared.Root, "docs", "tutorial.md")
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
			t.Fatalf("docs/tutorial.md:%d: exit code %d\n%s\n%s", step.Line, code, step.Commands, got)
		case difference == "":
			printed[i] = step.Output
		case os.Getenv("UPDATE_GOLDEN") == "":
			t.Fatalf("docs/tutorial.md:%d: other output than in the page\n%s\n%s", step.Line, step.Commands, difference)
		}
	}
	if replaced != len(replacedSteps) {
		t.Errorf("the tutorial does not have %q", replacedSteps[replaced])
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		runbook.Update(t, path, steps, printed)
	}
}

// shell starts a shell in the checkout in which kubectl and the plugin use the namespace of the test.
func (k *kubectl) shell() *runbook.Shell {
	k.Helper()
	path := filepath.Dir(kubectlPath(k.T)) + string(os.PathListSeparator) + k.pluginPath()
	return runbook.NewShell(k.T, shared.Root, "KUBECONFIG="+k.named().kubeconfig, "PATH="+path, "LC_ALL=C.UTF-8", "COLUMNS=")
}
