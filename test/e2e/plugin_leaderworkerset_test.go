// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pluginGroups is a set of two groups of two pods. Its pods need the lines of a template that say where they run, and
// the version of the image.
const pluginGroups = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: serve
spec:
  replicas: 2
  revisionHistoryLimit: 3
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        terminationGracePeriodSeconds: 0
        %s
        containers:
        - name: main
          image: registry.example/server:v%d
          resources: {requests: {cpu: "1"}}
`

// groupsView waits until a command shows these texts, whose spaces are single ones.
func (k *kubectl) groupsView(args []string, texts ...string) {
	k.Helper()
	k.eventually(func() string {
		r := k.plugin(args...)
		got := strings.Join(figures(r.stdout), "\n")
		for _, text := range texts {
			if r.code != 0 || !strings.Contains(got, text) {
				return fmt.Sprintf("kubectl jobset %s: exit code %d, no %q in:\n%s\n%s", strings.Join(args, " "), r.code, text, got, r.stderr)
			}
		}
		return ""
	})
}

// groupPodUIDs are the UIDs of the pods of a group, in the order of their names.
func (k *kubectl) groupPodUIDs(group int) []string {
	k.Helper()
	return strings.Fields(k.ok("get", "pods", "-l", fmt.Sprintf("leaderworkerset.sigs.k8s.io/group-index=%d", group), "-o", "jsonpath={.items[*].metadata.uid}"))
}

// images are the images of the pods, in the order of their names.
func (k *kubectl) images() string {
	k.Helper()
	return k.ok("get", "pods", "-l", "leaderworkerset.sigs.k8s.io/name=serve", "-o", "jsonpath={.items[*].spec.containers[0].image}")
}

// TestPluginOnALeaderWorkerSet follows one set through its life with the commands of the plugin: preview, views, logs,
// a failure, restarts, an update that is paused and resumed, and a rollback. The views are read with the role for
// people on call.
func TestPluginOnALeaderWorkerSet(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	l := newKubelet(t, k)
	t.Cleanup(func() { k.run("", "delete", "leaderworkersets", "--all", "--timeout=5m") })
	manifest := func(version int) string {
		return fmt.Sprintf(pluginGroups, strings.ReplaceAll(l.here(), "\n", "\n        "), version)
	}
	before := k.pluginIn(manifest(1), "preview", "-f", "-")
	if want := "The set would create 2 groups"; before.code != 0 || !strings.Contains(before.stdout, want) {
		t.Errorf("the preview does not say %q, exit code %d:\n%s%s", want, before.code, before.stdout, before.stderr)
	}
	k.okIn(manifest(1), "apply", "-f", "-")
	k.wait("--for=condition=Available", "lws/serve")

	operator := k.account("oncall", "jobset-operator")
	operator.mayEventually("list", "controllerrevisions.apps")
	groupsThatRun(operator, l)
	groupThatFails(k, operator)
	groupsThatAreRestarted(k, operator)
	groupsThatAreUpdated(k, operator, manifest(2))
}

// groupsThatRun looks at a set that runs.
func groupsThatRun(k *kubectl, l *kubelet) {
	k.Helper()
	k.groupsView([]string{"tree", "lws/serve"}, "leaderworkerset/serve Available 2/2 0 ", "├─ group/0 Ready 2/2 0 ", "│ ├─ pod/serve-0 Running 1/1 0 ", "└─ pod/serve-1-1 Running 1/1 0 ")
	k.groupsView([]string{"why", "lws/serve"}, "2/2 groups ready", "runs: 2 of 2 groups ready")
	k.groupsView([]string{"timeline", "leaderworkerset/serve"}, "/serve: Available, 2 of 2 groups ready, age AGE", "revision 1 ━", "\ngroup 1 ", "█ running", "━ current ▶ still running",
		"GROUP REVISION CREATED READY SINCE RESTARTS STATE MESSAGE\n0 1 ")
	k.groupsView([]string{"top", "lws/serve"}, "Groups 2 of 2 ready, 2 updated, of 2 pods each", "Pods 4 of 4 ready", "Requests 4 cpu", "GROUP STATE PODS READY RESTARTS REVISION CPU MEMORY", "0 Ready 2/2 0 ",
		l.node)
	for command, kind := range map[string]string{"tree": "Tree", "timeline": "Timeline", "top": "Top", "why": "Diagnosis", "events": "Events"} {
		if got := k.pluginOK(command, "lws/serve", "-o", "jsonpath={.apiVersion} {.kind}"); got != "kubectl.jobset-apiserver.io/v1alpha1 LeaderWorkerSet"+kind {
			k.Errorf("%s -o jsonpath: %q", command, got)
		}
	}
	page := filepath.Join(k.TempDir(), "serve.html")
	k.pluginOK("timeline", "lws/serve", "-o", "html", "--file", page)
	if content, err := os.ReadFile(page); err != nil || !strings.Contains(string(content), "Groups of leaderworkerset serve over time") {
		k.Errorf("the page: error %v\n%s", err, content)
	}
	for _, tc := range [][]string{{"timeline", "lws/serve", "--jobs"}, {"top", "sqj/serve"}} {
		if r := k.plugin(tc...); r.code != 1 || !strings.Contains(r.stderr, "LeaderWorkerSet") {
			k.Errorf("kubectl jobset %s: exit code %d, %s", strings.Join(tc, " "), r.code, r.stderr)
		}
	}
	for group := range 2 {
		for _, pod := range []string{fmt.Sprintf("serve-%d", group), fmt.Sprintf("serve-%d-1", group)} {
			l.write(pod, "main", "I am "+pod)
			l.end(pod, "main")
		}
	}
	if got, want := k.pluginOK("logs", "lws/serve"), "[0-0] I am serve-0\n[0-1] I am serve-0-1\n[1-0] I am serve-1\n[1-1] I am serve-1-1\n"; got != want {
		k.Errorf("logs are:\n%swant:\n%s", got, want)
	}
	if got, want := k.pluginOK("logs", "lws/serve", "--group", "1", "--worker", "1"), "I am serve-1-1\n"; !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
		k.Errorf("logs of one worker are:\n%swant:\n%s", got, want)
	}
}

// groupThatFails has a pod of the group 1 deleted, for which the group is recreated.
func groupThatFails(k, reader *kubectl) {
	k.Helper()
	former := k.groupPodUIDs(1)
	k.ok("delete", "pod", "serve-1-1", "--wait=true")
	k.eventually(func() string {
		now := k.groupPodUIDs(1)
		if len(now) != 2 || slices.ContainsFunc(now, func(uid string) bool { return slices.Contains(former, uid) }) {
			return fmt.Sprintf("group 1 was not recreated: %v, before %v", now, former)
		}
		return k.hasNot("lws/serve", "{.status.groups[?(@.index==1)].restarts}", "1")
	})
	k.wait("--for=condition=Available", "lws/serve")
	reader.groupsView([]string{"timeline", "lws/serve"}, "1 restart after failures", "recreated: ", "first cause: ", "pod serve-1-1")
	reader.groupsView([]string{"top", "lws/serve"}, "Restarts 1 of groups after failures", "\n1 Ready 2/2 1 ")
	reader.groupsView([]string{"tree", "lws/serve"}, "leaderworkerset/serve Available 2/2 1 ", "group/1 Ready 2/2 1 ")
}

// groupsThatAreRestarted restarts one group and then all.
func groupsThatAreRestarted(k, reader *kubectl) {
	k.Helper()
	const set = "leaderworkerset.leaderworkerset.x-k8s.io/serve"
	first, second := k.groupPodUIDs(0), k.groupPodUIDs(1)
	out := k.pluginOK("restart", "lws/serve", "--group", "1", "--reason", "stuck", "--wait", "--timeout=5m")
	if !strings.Contains(out, set+" restarted") || !strings.Contains(out, "2 of 2 groups ready") {
		k.Errorf("the restart of a group says:\n%s", out)
	}
	if !slices.Equal(first, k.groupPodUIDs(0)) || slices.Equal(second, k.groupPodUIDs(1)) {
		k.Error("not just the group 1 was restarted")
	}
	reader.groupsView([]string{"timeline", "lws/serve"}, "last action: Restart of group 1 by kwok-admin AGE ago: stuck", "1 restart after failures")
	second = k.groupPodUIDs(1)
	k.pluginOK("restart", "lws/serve", "--wait", "--timeout=5m")
	for group, former := range [][]string{first, second} {
		if now := k.groupPodUIDs(group); len(now) != 2 || slices.ContainsFunc(now, func(uid string) bool { return slices.Contains(former, uid) }) {
			k.Errorf("group %d was not restarted: %v, before %v", group, now, former)
		}
	}
}

// groupsThatAreUpdated pauses an update, resumes it, and returns to the first revision.
func groupsThatAreUpdated(k, reader *kubectl, update string) {
	k.Helper()
	const first, second = "registry.example/server:v1", "registry.example/server:v2"
	if r := k.pluginIn(update, "preview", "-f", "-"); r.code != 0 || !strings.Contains(r.stdout, "The set would change in 1 field, and groups would be replaced.") {
		k.Errorf("the preview of an update, exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	k.pluginOK("pause", "lws/serve", "--reason", "let me see", "--wait", "--timeout=5m")
	k.okIn(update, "apply", "-f", "-")
	reader.groupsView([]string{"why", "lws/serve"}, "UpdatePaused", `the update is paused by kwok-admin AGE ago: "let me see"; 0 of 2 groups have the revision`, "resume lws/serve")
	reader.groupsView([]string{"timeline", "lws/serve"}, "/serve: Paused (GroupsUpdating)", "revision 2 ", "╌ paused", "paused 0")
	if got := k.images(); strings.Contains(got, second) {
		k.Errorf("images while the update is paused: %s", got)
	}
	k.pluginOK("resume", "lws/serve", "--wait", "--timeout=5m")
	k.wait("--for=jsonpath={.status.updatedReplicas}=2", "lws/serve")
	k.wait("--for=condition=Available", "lws/serve")
	if got := k.images(); got != strings.Join([]string{second, second, second, second}, " ") {
		k.Errorf("images after the update: %s", got)
	}
	// The bar of an update that took less than a second shows no phase of it.
	reader.groupsView([]string{"timeline", "lws/serve"}, "/serve: Available", "revision 2 ", "\n2 ")

	suggested := k.withPlugins("", "__completeNoDesc", "jobset", "--namespace="+k.namespace, "rollback", "serve", "--to-revision", "")
	if !strings.HasPrefix(suggested.stdout, "1\n:") {
		k.Errorf("completions of --to-revision:\n%s%s", suggested.stdout, suggested.stderr)
	}
	out := k.pluginOK("rollback", "lws/serve", "--to-revision", "1", "--reason", "latency", "--wait", "--timeout=5m")
	if !strings.Contains(out, "rolled back (revision 1)") || !strings.Contains(out, "2 of 2 groups ready") {
		k.Errorf("the rollback says:\n%s", out)
	}
	if got := k.images(); got != strings.Join([]string{first, first, first, first}, " ") {
		k.Errorf("images after the rollback: %s", got)
	}
	reader.groupsView([]string{"timeline", "lws/serve"}, "last action: Rollback to revision 1 by kwok-admin AGE ago: latency", "revision 3 ")
	reader.groupsView([]string{"why", "lws/serve"}, "runs: 2 of 2 groups ready")
}
