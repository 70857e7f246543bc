// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const theSet = "jobset.jobset.x-k8s.io/train"

// afterTime is how long something took, and afterAgo how long ago it happened.
var (
	afterTime = regexp.MustCompile(` after [0-9.hm]+s`)
	afterAgo  = regexp.MustCompile(` [0-9ms]+ ago`)
)

// acts calls an action of the plugin, which must succeed and print these lines, but for times.
func (k *kubectl) acts(args []string, want ...string) {
	k.Helper()
	got := strings.Split(strings.TrimSpace(afterTime.ReplaceAllString(k.pluginOK(args...), "")), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		k.Errorf("kubectl jobset %s (-want +got):\n%s", strings.Join(args, " "), diff)
	}
}

// actsNot calls an action of the plugin, which must fail with this message.
func (k *kubectl) actsNot(args []string, want string) {
	k.Helper()
	r := k.plugin(args...)
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if diff := cmp.Diff(want, afterAgo.ReplaceAllString(lines[len(lines)-1], "")); diff != "" || r.code != 1 {
		k.Errorf("kubectl jobset %s: exit code %d, message (-want +got):\n%s", strings.Join(args, " "), r.code, diff)
	}
}

func TestPluginActsAndWaits(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "failurePolicy: {maxRestarts: 1}"), "apply", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	const who = "kwok-admin"
	wait := []string{"--wait", "--timeout=5m"}
	with := func(words ...string) []string { return append(words, wait...) }
	uids := func() string { return k.ok("get", "jobs", "-o", "jsonpath={.items[*].metadata.uid}") }

	before := strings.Fields(uids())
	k.acts(with("restart", "train", "--reason=rack 7"), theSet+" restarted (attempt 2)", theSet+": 2 of 2 Jobs ready in attempt 2")
	for _, uid := range before {
		if strings.Contains(uids(), uid) {
			t.Error("after waiting for the restart, a Job of the attempt before is there")
		}
	}
	k.acts(with("restart", "js/train", "--replicated-job=workers", "--job-index=1"),
		theSet+" restarted (attempt 3, Job 1 of replicatedJob workers)", theSet+": 2 of 2 Jobs ready in attempt 3")
	k.acts(with("suspend", "train", "--reason=drain"), theSet+" suspended (attempt 3)", theSet+": suspended, no pod is left")
	if pods := k.ok("get", "pods", "-o", "name"); pods != "" {
		t.Errorf("after waiting for the suspension, there are pods: %s", pods)
	}
	k.acts([]string{"suspend", "train"}, theSet+" unchanged: the JobSet is already suspended; nothing changed")
	k.actsNot([]string{"restart", "train"}, "error: "+theSet+" not restarted: the JobSet is suspended; resume it instead")
	k.acts(with("resume", "train"), theSet+" resumed (attempt 4)", theSet+": 2 of 2 Jobs ready in attempt 4")
	k.acts(with("cancel", "train", "--reason=wrong data"), theSet+" cancelled (attempt 4)", theSet+": no Job is running")
	if jobs := k.ok("get", "jobs", "-o", "name"); jobs != "" {
		t.Errorf("after waiting for the cancellation, there are Jobs: %s", jobs)
	}
	k.acts([]string{"cancel", "train"}, theSet+" cancelled (attempt 4)")
	k.actsNot([]string{"resume", "train"}, "error: "+theSet+" not resumed: the JobSet has failed; there is nothing to resume; retry it instead")
	k.acts(with("retry", "train", "--max-restarts=2", "--reason=again"), theSet+" retried (attempt 5)", theSet+": 2 of 2 Jobs ready in attempt 5")

	by := func(reason string) string { return fmt.Sprintf(" (%s: %s)", who, reason) }
	k.awaitSummary("train", "restarts=2 | 1 Start → Restarted"+by("rack 7")+" | 2 Requested"+by("rack 7")+" → Restarted"+by("")+
		" | 3 Requested"+by("")+" → Suspended"+by("drain")+" | 4 Resume"+by("")+" → Cancelled"+by("wrong data")+" | 5 Retry"+by("again")+", ready")
	if got := k.field("jobset/train", "{.status.addedRestarts}"); got != "2" {
		t.Errorf("restarts granted by the retry: %q, want 2", got)
	}
}

func TestPluginRestartsOnceHoweverOftenItIsAsked(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")

	k.acts([]string{"restart", "train", "--attempt=1", "--dry-run=server"}, theSet+" restarted (attempt 2) (server dry run)")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if r := k.plugin("restart", "train", "--attempt=1"); r.stdout != theSet+" restarted (attempt 2)\n" {
				t.Errorf("exit code %d, output %q, messages %q", r.code, r.stdout, r.stderr)
			}
		})
	}
	all.Wait()
	k.acts([]string{"restart", "train", "--attempt=1"}, theSet+" restarted (attempt 2)")
	k.awaitSummary("train", "restarts=1 | 1 Start → Restarted (kwok-admin: ) | 2 Requested (kwok-admin: ), ready")
	k.actsNot([]string{"restart", "train", "--attempt=1", "--replicated-job=workers"}, "error: "+theSet+" not restarted: --attempt 1 is out of date; "+
		"attempt 2 is current (begun by a restart requested by kwok-admin)")
	k.acts([]string{"suspend", "train", "--attempt=2"}, theSet+" suspended (attempt 2)")
	k.acts([]string{"suspend", "train", "--attempt=2"}, theSet+" suspended (attempt 2)")
	k.acts([]string{"resume", "train"}, theSet+" resumed (attempt 3)")
	k.actsNot([]string{"suspend", "train", "--attempt=2"}, "error: "+theSet+" not suspended: attempt 2 was suspended by kwok-admin; attempt 3 is running")
	k.actsNot([]string{"restart", "train", "--attempt=1"}, "error: "+theSet+" not restarted: attempt 1 was restarted by kwok-admin; attempt 3 is running")
}

// neverReady is a replicatedJob to end a manifest with, whose pod starts in an hour.
const neverReady = `  - name: slow
    template:
      spec:
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-start-after: 1h}}
          spec:
            containers: [{name: main, image: registry.example/trainer:v1}]
`

func TestPluginWaitEndsWhenItsTimeIsOver(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn)+neverReady, "apply", "-f", "-")
	ready := func() {
		k.wait("--for=jsonpath={.status.replicatedJobsStatus[?(@.name=='workers')].ready}=2", "jobset/train")
	}
	ready()
	k.acts([]string{"restart", "train", "--attempt=1"}, theSet+" restarted (attempt 2)")
	k.wait("--for=jsonpath={.status.attempts[1].createTime}", "jobset/train")
	ready()
	// The restart that was done already: only its end is waited for, so that the state is known when the time is over.
	k.actsNot([]string{"restart", "train", "--attempt=1", "--wait", "--timeout=3s"}, "error: "+theSet+": timed out after 3s: 3 of 3 created, 2 of 3 ready; "+
		"run `kubectl jobset why train` for the cause")
}

func TestPluginWaitShowsWhyASetFailed(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	annotations := fail + "\n              jobset-apiserver.io/kwok-exit-code: \"42\""
	k.okIn(manifest("train", annotations, "suspend: true")+neverReady, "apply", "-f", "-")
	k.wait("--for=condition=Suspended", "jobset/train")
	r := k.plugin("resume", "train", "--wait", "--timeout=5m")
	if r.code != 1 {
		t.Errorf("exit code %d, want 1", r.code)
	}
	told := regexp.MustCompile(`error: ` + theSet + `: Failed \(FailedJobs\): .*; first cause: pod train-workers-[01]-0-\w+ on node node-\d+: Error, container main exit code 42`)
	if !told.MatchString(r.stderr) {
		t.Errorf("the message does not contain the first cause:\n%s", r.stderr)
	}
}

func TestPluginContinuesAfterRejection(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	for _, name := range []string{"a", "b"} {
		k.okIn(manifest(name, runOn), "apply", "-f", "-")
		k.awaitSummary(name, "restarts=0 | 1 Start, ready") // a set that never ran has no attempt to name
	}
	r := k.plugin("suspend", "a", "nobody", "b")
	want := result{
		stdout: "jobset.jobset.x-k8s.io/a suspended (attempt 1)\njobset.jobset.x-k8s.io/b suspended (attempt 1)\n",
		stderr: "error: jobsets.jobset.x-k8s.io \"nobody\" not found\n", code: 1,
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", r)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func TestPluginServesUsersWhoMayNotReadJobs(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	operator := k.actor("oncall")
	wait := []string{"--wait", "--timeout=5m"}
	operator.eventually(func() string { // our server remembers for a while who may not
		if r := operator.plugin("restart", "train", "--dry-run=server"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	operator.acts(append([]string{"restart", "train"}, wait...), theSet+" restarted (attempt 2)", theSet+": 2 of 2 Jobs ready in attempt 2")
	operator.acts(append([]string{"suspend", "train"}, wait...), theSet+" suspended (attempt 2)", theSet+": suspended, no pod is left")
	k.awaitSummary("train", "suspend restarts=1 Suspended/SuspendedJobs | 1 Start → Restarted (oncall: ) | 2 Requested (oncall: ) → Suspended (oncall: )")
}

func TestPluginAsksOnTerminalsBeforeItCancels(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	typed := func(answer string, args ...string) string {
		t.Helper()
		cmd := exec.Command(kubectlPath(t), append([]string{"jobset", "--namespace=" + k.namespace}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "PATH="+k.pluginPath())
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 20})
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		if _, err := io.WriteString(terminal, answer); err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(terminal) // ends with an error when the program has ended
		if err := cmd.Wait(); err != nil {
			t.Fatalf("kubectl jobset %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.ReplaceAll(string(out), "\r\n", "\n")
	}
	const question = "Cancel train? Its active Jobs are deleted, the object is kept. [y/N] "
	if got := typed("n\n", "cancel", "train"); !strings.Contains(got, question) || !strings.Contains(got, "Nothing was cancelled.") {
		t.Errorf("after no:\n%s", got)
	}
	if got := k.field("jobset/train", "{.status.terminalState}"); got != "" {
		t.Fatalf("the set was cancelled although the answer was no: %s", got)
	}
	got := typed("y\n", "cancel", "train", "--wait", "--timeout=5m")
	if !strings.Contains(got, question) || !strings.Contains(got, theSet+": no Job is running") {
		t.Errorf("after yes:\n%s", got)
	}
	if got := k.field("jobset/train", "{.status.terminalState}"); got != "Failed" {
		t.Errorf("terminal state after yes: %q", got)
	}
}
