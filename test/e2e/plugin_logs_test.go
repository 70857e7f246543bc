// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// logsManifest is a set of one leader, and of two Jobs of two workers each, on the node of the kubelet.
func logsManifest(l *kubelet, annotation string, spec ...string) string {
	replicatedJob := func(name string, replicas, pods int) string {
		return fmt.Sprintf(`  - name: %s
    replicas: %d
    template:
      spec:
        parallelism: %[3]d
        completions: %[3]d
        completionMode: Indexed
        backoffLimit: 0
        template:
          metadata: {annotations: {%s}}
          spec:
            %s
            containers:
            - {name: main, image: registry.example/trainer:v1}
            - {name: monitor, image: registry.example/monitor:v1}
`, name, replicas, pods, annotation, strings.ReplaceAll(l.here(), "\n", "\n            "))
	}
	return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec:\n" + strings.Join(append(spec, ""), "\n") +
		"  replicatedJobs:\n" + replicatedJob("leader", 1, 1) + replicatedJob("workers", 2, 2)
}

// pods waits for so many pods that run on the node and are not being deleted, and returns their names by rank.
func (l *kubelet) pods(want int, states ...string) map[string]string {
	l.Helper()
	names := map[string]string{}
	l.eventually(func() string {
		clear(names)
		out := l.ok("get", "pods", "-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{index .metadata.labels "jobset.sigs.k8s.io/replicatedjob-name"}}-`+
			`{{index .metadata.labels "jobset.sigs.k8s.io/job-index"}}-{{index .metadata.annotations "batch.kubernetes.io/job-completion-index"}} {{.metadata.name}} {{.status.phase}}{{"\n"}}{{end}}{{end}}`)
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			if len(fields) == 3 && slices.Contains(append(states, "Running"), fields[2]) {
				names[fields[0]] = fields[1]
			}
		}
		if len(names) != want {
			return fmt.Sprintf("pods that run: %d, want %d:\n%s", len(names), want, out)
		}
		return ""
	})
	return names
}

func TestPluginPrintsLogsOfAllPods(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	k.okIn(logsManifest(l, runOn), "apply", "-f", "-")
	pods := l.pods(5)
	for rank, pod := range pods {
		for i := range 12 {
			l.write(pod, "main", fmt.Sprintf("%s step %d", rank, i))
		}
		l.write(pod, "monitor", rank+" is well")
	}
	want := func(lines int, ranks ...string) string {
		text := ""
		for _, rank := range ranks {
			for i := 12 - lines; i < 12; i++ {
				text += fmt.Sprintf("[%s] %[1]s step %d\n", rank, i)
			}
		}
		return text
	}
	for name, tc := range map[string]struct {
		args       []string
		want       string
		wantStderr string
	}{
		"ten lines of each pod in the order of the ranks": {
			want:       want(10, "leader-0-0", "workers-0-0", "workers-0-1", "workers-1-0", "workers-1-1"),
			wantStderr: "showing container main of main, monitor",
		},
		"one replicatedJob": {
			args: []string{"--replicated-job", "workers", "--tail", "2"}, want: want(2, "workers-0-0", "workers-0-1", "workers-1-0", "workers-1-1"),
		},
		"one Job":                     {args: []string{"--replicated-job", "workers", "--job-index", "1", "--tail", "1"}, want: want(1, "workers-1-0", "workers-1-1")},
		"all lines of a single pod":   {args: []string{"--replicated-job", "leader"}, want: want(12, "leader-0-0")},
		"all lines on request":        {args: []string{"--replicated-job", "workers", "--job-index", "0", "--tail", "-1"}, want: want(12, "workers-0-0", "workers-0-1")},
		"all recent lines by default": {args: []string{"--replicated-job", "workers", "--job-index", "0", "--since", "1h"}, want: want(12, "workers-0-0", "workers-0-1")},
		"one at a time":               {args: []string{"--max-log-requests", "1", "--tail", "1"}, want: want(1, "leader-0-0", "workers-0-0", "workers-0-1", "workers-1-0", "workers-1-1")},
		"another container":           {args: []string{"--replicated-job", "leader", "-c", "monitor"}, want: "[leader-0-0] leader-0-0 is well\n"},
		"all containers": {
			args: []string{"--replicated-job", "leader", "--all-containers", "--tail", "1"},
			want: "[leader-0-0 main] leader-0-0 step 11\n[leader-0-0 monitor] leader-0-0 is well\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := k.plugin(append([]string{"logs", "train"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got.stdout); diff != "" || got.code != 0 {
				t.Errorf("exit code %d, output (-want +got):\n%s%s", got.code, diff, got.stderr)
			}
			if !strings.Contains(got.stderr, tc.wantStderr) {
				t.Errorf("message %q does not contain %q", got.stderr, tc.wantStderr)
			}
		})
	}
	if got := k.pluginOK("logs", "train", "--replicated-job", "leader", "--tail", "1", "--timestamps"); !strings.HasPrefix(got, "[leader-0-0] "+time.Now().UTC().Format("2006-01-02T")) {
		t.Errorf("no time in %q", got)
	}
}

func TestPluginRefusesLogsWithReason(t *testing.T) {
	tier.OnRequest(t, "follows logs in real time")
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	k.okIn(logsManifest(l, runOn), "apply", "-f", "-")
	l.pods(5)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such set":              {args: []string{"other"}, want: `"other" not found`},
		"no such replicatedJob":    {args: []string{"train", "--replicated-job", "drivers"}, want: `--replicated-job: must be one of leader, workers, not "drivers"`},
		"no such Job":              {args: []string{"train", "--replicated-job", "workers", "--job-index", "2"}, want: "--job-index: must be from 0 to 1, not 2"},
		"an index of what":         {args: []string{"train", "--job-index", "0"}, want: "--job-index: needs --replicated-job"},
		"no such container":        {args: []string{"train", "-c", "sidecar"}, want: `--container: must be one of main, monitor, not "sidecar"`},
		"no such attempt":          {args: []string{"train", "--attempt", "7"}, want: "attempt 7 is not on record; those of jobset train are 1 to 1"},
		"too many to follow":       {args: []string{"train", "-f", "--max-log-requests", "4"}, want: "--max-log-requests: -f would read 5 logs at the same time, and 4 is the limit"},
		"a past that is to come":   {args: []string{"train", "-f", "--previous"}, want: "--previous: cannot be used with -f"},
		"no failure":               {args: []string{"train", "--first-failed"}, want: "no failed pod of jobset train exists"},
		"no earlier run":           {args: []string{"train", "--previous"}, want: "no earlier run of the container (5 of 5 pods): train-leader-0-0-"},
		"two answers to container": {args: []string{"train", "-c", "main", "--all-containers"}, want: "--container: cannot be used with --all-containers"},
	} {
		t.Run(name, func(t *testing.T) {
			got := k.plugin(append([]string{"logs"}, tc.args...)...)
			if got.code == 0 || got.stdout != "" || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("exit code %d, output %q, message %q does not contain %q", got.code, got.stdout, got.stderr, tc.want)
			}
		})
	}
}

func TestPluginLogsOfTheFirstFailure(t *testing.T) {
	tier.OnRequest(t, "follows logs in real time")
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	k.okIn(logsManifest(l, runOn, "  failurePolicy: {maxRestarts: 1}"), "apply", "-f", "-")
	first := l.pods(5)["workers-1-0"]
	k.ok("annotate", "pod", first, "--overwrite", strings.ReplaceAll(strings.ReplaceAll(fail, ": ", "="), `"`, ""))
	k.eventually(func() string {
		if got := k.field("jobset/train", "{.status.attempts[*].number}"); got != "1 2" {
			return "attempts: " + got
		}
		return ""
	})
	second := l.pods(5)["workers-0-1"]
	gone := k.plugin("logs", "train", "--attempt", "1")
	for _, want := range []string{"no pod of attempt 1 of jobset train exists any more", first, l.node, "exit code 1"} {
		if gone.code == 0 || !strings.Contains(gone.stderr, want) {
			t.Errorf("exit code %d, message %q does not contain %q", gone.code, gone.stderr, want)
		}
	}
	l.write(second, "main", "assert failed")
	k.ok("annotate", "pod", second, "--overwrite", strings.ReplaceAll(strings.ReplaceAll(fail, ": ", "="), `"`, ""))
	k.wait("--for=condition=Failed", "jobset/train")
	if diff := cmp.Diff("[workers-0-1] assert failed\n", k.pluginOK("logs", "train", "--first-failed")); diff != "" {
		t.Errorf("log of the first failure (-want +got):\n%s", diff)
	}
	if got := k.plugin("logs", "train", "--first-failed"); !strings.Contains(got.stderr, "first cause of the end of attempt 2") {
		t.Errorf("message %q does not say of which attempt", got.stderr)
	}
}

func TestPluginFollowsLogsThroughARestart(t *testing.T) {
	tier.OnRequest(t, "follows logs in real time")
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	k.okIn(logsManifest(l, runOn), "apply", "-f", "-")
	first := l.pods(5)
	for rank, pod := range first {
		l.write(pod, "main", "first attempt of "+rank)
	}
	// A connection that breaks loses no line and repeats none.
	l.write(first["leader-0-0"], "main", "one", "two", "three")
	l.breakAfter(first["leader-0-0"], "main", 2)
	f := k.follow("logs", "train", "-f")
	shows := func(lines ...string) {
		t.Helper()
		k.eventually(func() string {
			got := f.String()
			for _, line := range lines {
				if n := strings.Count(got, line+"\n"); n != 1 {
					return fmt.Sprintf("%q is there %d times in:\n%s", line, n, got)
				}
			}
			return ""
		})
	}
	shows("[leader-0-0] one", "[leader-0-0] two", "[leader-0-0] three", "[workers-1-1] first attempt of workers-1-1")
	l.write(first["workers-0-1"], "main", "written later")
	shows("[workers-0-1] written later")
	if got := l.requests(first["leader-0-0"], "main"); got < 2 {
		t.Errorf("the log that broke was asked for %d times, want once more at least", got)
	}

	k.pluginOK("restart", "train", "--reason", "see the logs go on")
	k.eventually(func() string {
		for _, pod := range l.pods(5) {
			if slices.Contains([]string{first["leader-0-0"], first["workers-0-0"], first["workers-1-1"]}, pod) {
				return "pods of the first attempt are left"
			}
		}
		return ""
	})
	for rank, pod := range l.pods(5) {
		for i := range 15 {
			l.write(pod, "main", fmt.Sprintf("second attempt of %s: %d", rank, i))
		}
	}
	// What begins while following is shown from its first line.
	shows("[leader-0-0] second attempt of leader-0-0: 0", "[workers-1-0] second attempt of workers-1-0: 14")
	for _, pod := range l.pods(5) {
		l.end(pod, "main")
		k.ok("annotate", "pod", pod, "--overwrite", "jobset-apiserver.io/kwok-outcome=succeeded", "jobset-apiserver.io/kwok-run-seconds=1")
	}
	k.wait("--for=condition=Completed", "jobset/train")
	f.ends()
}
