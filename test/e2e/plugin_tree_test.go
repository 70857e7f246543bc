// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/sample"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// onTerminal calls the plugin on a pseudo terminal of that width and returns what the user would see.
func (k *kubectl) onTerminal(width uint16, env []string, args ...string) string {
	k.Helper()
	cmd := exec.Command(kubectlPath(k.T), append([]string{"jobset", "--namespace=" + k.namespace}, args...)...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "PATH="+k.pluginPath(), "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR="), env...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: width, Rows: 50})
	if err != nil {
		k.Fatalf("starting the plugin on a pseudo terminal: %v", err)
	}
	defer terminal.Close()
	// Linux ends the stream with an error when the program has ended.
	out, _ := io.ReadAll(terminal)
	if err := cmd.Wait(); err != nil {
		k.Fatalf("kubectl jobset %s on a terminal: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

var paint = regexp.MustCompile("\x1b\\[[0-9]*m")

// figures replaces what differs from run to run: names of pods and nodes, and ages.
func figures(text string) []string {
	text = regexp.MustCompile(`(pod/[a-z0-9-]+)-[a-z0-9]{5}\b`).ReplaceAllString(text, "$1")
	text = regexp.MustCompile(`\bnode-\d+`).ReplaceAllString(text, "NODE")
	text = regexp.MustCompile(`\b\d+m?s\b|\b\d+m\d+s\b`).ReplaceAllString(text, "AGE")
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestPluginTreeShowsJobsAndPods(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	want := []string{
		"NAME STATE READY RESTARTS AGE NODE MESSAGE",
		"jobset/train Running 2/2 0 AGE",
		"└─ replicatedJob/workers Ready 2/2 0",
		"├─ job/train-workers-0 Ready 1/1 0 AGE",
		"│ └─ pod/train-workers-0-0 Running 1/1 0 AGE NODE",
		"└─ job/train-workers-1 Ready 1/1 0 AGE",
		"└─ pod/train-workers-1-0 Running 1/1 0 AGE NODE",
	}
	k.eventually(func() string {
		got := figures(k.pluginOK("tree", "jobset/train"))
		if len(got) > 1 {
			got[1], _, _ = strings.Cut(got[1], " attempt ")
		}
		return cmp.Diff(want, got)
	})

	t.Run("colors and width of a terminal", func(t *testing.T) {
		seen := k.onTerminal(50, nil, "tree", "train")
		if !strings.Contains(seen, "\x1b[32mRunning\x1b[0m") {
			t.Errorf("Running is not green on a terminal:\n%q", seen)
		}
		for _, line := range strings.Split(strings.TrimSuffix(seen, "\n"), "\n") {
			text := paint.ReplaceAllString(line, "")
			if n := utf8.RuneCountInString(text); n > 50 {
				t.Errorf("a line of %d characters on a terminal with 50 columns: %q", n, text)
			}
		}
		if !strings.Contains(seen, "READY") || strings.Contains(seen, "NODE") {
			t.Errorf("the less important columns are not left out:\n%s", seen)
		}
		if seen := k.onTerminal(200, []string{"NO_COLOR=1"}, "tree", "train"); strings.Contains(seen, "\x1b[") {
			t.Errorf("colors although NO_COLOR is set:\n%q", seen)
		}
		if piped := k.pluginOK("tree", "train"); strings.Contains(piped, "\x1b[") || strings.Contains(piped, "…") {
			t.Errorf("colors or cut lines in a pipe:\n%q", piped)
		}
	})
	t.Run("data for scripts", func(t *testing.T) {
		var tree struct {
			Name           string
			ReplicatedJobs []struct {
				Jobs []struct {
					Name string
					Pods []struct{ State, Node string }
				}
			}
		}
		if err := json.Unmarshal([]byte(k.pluginOK("tree", "train", "-o", "json")), &tree); err != nil {
			t.Fatal(err)
		}
		job := tree.ReplicatedJobs[0].Jobs[1]
		if tree.Name != "train" || job.Name != "train-workers-1" || job.Pods[0].State != "Running" || job.Pods[0].Node == "" {
			t.Errorf("data are %+v", tree)
		}
	})
	t.Run("reports are objects", func(t *testing.T) {
		for command, want := range map[string]string{"tree": "JobSetTree", "top": "JobSetTop", "timeline": "JobSetTimeline", "why": "JobSetDiagnosis"} {
			got := k.pluginOK(command, "train", "-o", "jsonpath={.apiVersion} {.kind} {.namespace}")
			if got != "kubectl.jobset-apiserver.io/v1alpha1 "+want+" "+k.namespace {
				t.Errorf("%s is %q", command, got)
			}
		}
	})
	t.Run("wrong use names the fix", func(t *testing.T) {
		for args, want := range map[string]string{
			"tree":                           "error: NAME: give the name of a JobSet, SequentialJob, LeaderWorkerSet, DisaggregatedSet or Run; `kubectl jobset list` lists them\n",
			"tree train -o wide":             "error: unable to match a printer suitable for the output format \"wide\", allowed formats are: ",
			"tree nobody":                    "error: NAME: \"nobody\" not found: the namespace " + k.namespace + " has no JobSet, SequentialJob",
			"top train --domain-label=a/b/c": "error: --domain-label: must be the key of a label, not \"a/b/c\"",
			"tree --nonsense":                "error: unknown flag: --nonsense; see --help\n",
		} {
			got := k.plugin(strings.Fields(args)...)
			if got.code != 1 || !strings.HasPrefix(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("kubectl jobset %s: exit code %d, message %q, want 1 and %q", args, got.code, got.stderr, want)
			}
		}
	})
}

func TestPluginTreeShowsWhatMissingJobsWaitFor(t *testing.T) {
	tier.OnRequest(t, "a thousand pods")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - {name: driver, template: &t {spec: {template: {metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {containers: [{name: main, image: x}]}}}}}
  - {name: workers, replicas: 3, dependsOn: [{name: driver, status: Complete}], template: *t}
`, "apply", "-f", "-")
	k.eventually(func() string {
		got := strings.Join(figures(k.pluginOK("tree", "train")), "\n")
		if want := "└─ job/train-workers-[0-2] Missing waits until driver is complete, 0 of 1 (dependsOn)"; !strings.Contains(got, want) {
			return fmt.Sprintf("%q is missing in:\n%s", want, got)
		}
		return ""
	})
}

// large is a set of Jobs with 100 pods each, for nodes with a label. The API removes the pods itself: KWOK would delete most of them twice,
// because the Job controller changes so many while they are being deleted.
const large = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    replicas: %d
    template:
      spec:
        parallelism: 100
        completions: 100
        backoffLimitPerIndex: 1
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            terminationGracePeriodSeconds: 0
            nodeSelector: {"example.com/%s": large}
            containers: [{name: main, image: x, resources: {requests: {cpu: 100m, memory: 1Gi}}}]
`

// requests matches what -v=6 logs for each request.
var requests = regexp.MustCompile(`"Response" verb="([A-Z]+)" url="https?://[^/]+([^"?]+)`)

// TestPluginWithManyPods creates pods that fit no node at first, and labels nodes for them later. Commands about them make few calls and
// print few lines. There are a thousand pods, two pages of a list, and two thousand in a run of all cases.
func TestPluginWithManyPods(t *testing.T) {
	tier.OnRequest(t, "a thousand pods")
	jobs, pods := 10, "1,000"
	if os.Getenv(sample.AllVariable) != "" {
		jobs, pods = 20, "2,000"
	}
	k := newKubectl(t)
	k.okIn(fmt.Sprintf(large, jobs, k.namespace), "apply", "-f", "-")
	// Later tests shall not wait for the control plane to clear this away.
	t.Cleanup(func() {
		k.ok("label", "nodes", "--all", "example.com/"+k.namespace+"-")
		k.ok("delete", "jobset", "train", "--wait=false")
		k.eventually(func() string { return k.ok("get", "pods", "-o", "name") })
	})
	waiting := pods + " pods fit no node"
	k.eventually(func() string {
		if first := k.why("train").Findings[0]; !strings.Contains(first.Summary, waiting) {
			return first.Summary
		}
		return ""
	})
	k.fewCalls(call{args: []string{"why", "jobset/train"}, want: waiting, mostCalls: 12, mostLines: 20})

	k.ok("label", "nodes", "-l", "jobset-apiserver.io/rack", "example.com/"+k.namespace+"=large")
	k.eventually(func() string {
		if ready := k.field("jobset/train", "{.status.replicatedJobsStatus[0].ready}"); ready != strconv.Itoa(jobs) {
			return "Jobs that are ready: " + ready
		}
		return ""
	})
	for _, c := range []call{
		{args: []string{"tree", "jobset/train"}, want: fmt.Sprintf("job/train-workers-%d Ready 100/100", jobs-1), mostCalls: 6, mostLines: 60},
		{args: []string{"top", "jobset/train"}, want: pods + " of " + pods + " ready", mostCalls: 6, mostLines: 60},
		{args: []string{"top", "jobset/train", "--domain-label=jobset-apiserver.io/rack"}, want: "rack-0", mostCalls: 6, mostLines: 60},
		// It joins more kinds.
		{args: []string{"why", "jobset/train"}, want: fmt.Sprintf("%d of %[1]d jobs ready", jobs), mostCalls: 12, mostLines: 60},
	} {
		k.fewCalls(c)
	}
}

// call is a call of the plugin about many pods.
type call struct {
	args []string
	// want is a part of the output.
	want                 string
	mostCalls, mostLines int
}

// fewCalls calls the plugin, and compares how many requests it makes and how many lines it prints with the bounds.
func (k *kubectl) fewCalls(c call) {
	k.Helper()
	name := strings.Join(c.args, " ")
	r := k.plugin(append(c.args, "-v=6")...)
	calls := requests.FindAllStringSubmatch(r.stderr, -1)
	if len(calls) == 0 || len(calls) > c.mostCalls {
		k.Errorf("%s: %d API calls, want at most %d: %v", name, len(calls), c.mostCalls, calls)
	}
	start := time.Now()
	out := k.pluginOK(c.args...)
	took := time.Since(start)
	lines := strings.Count(out, "\n")
	k.Logf("%s: %v, %d API calls, %d lines\n%s", name, took.Round(time.Millisecond), len(calls), lines, out)
	if lines > c.mostLines {
		k.Errorf("%s: %d lines, want at most %d", name, lines, c.mostLines)
	}
	if all := strings.Join(figures(out), "\n"); !strings.Contains(all, c.want) {
		k.Errorf("%s: %q is missing in:\n%s", name, c.want, all)
	}
}
