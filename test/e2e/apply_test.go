// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// version is what a write may or may not change.
func (k *kubectl) version(object string) string {
	k.Helper()
	return k.field(object, "{.metadata.generation}/{.metadata.resourceVersion}")
}

// awaitStable waits until the controller has nothing more to write to the status of a set.
func (k *kubectl) awaitStable(object string) string {
	k.Helper()
	last, since := "", time.Now()
	k.eventually(func() string {
		now := k.version(object)
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 4*time.Second {
			return "the status still changes"
		}
		return ""
	})
	return last
}

func TestServerSideApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	text := manifest("train", runOn, "suspend: true", "failurePolicy:\n  maxRestarts: 2\n  rules:\n  - {name: fatal, action: FailJobSet}")
	k.okIn(text, "apply", "--server-side", "-f", "-")
	before := k.awaitStable("jobset/train")
	k.okIn(text, "apply", "--server-side", "-f", "-")
	if after := k.version("jobset/train"); after != before {
		t.Errorf("generation/resourceVersion after the second apply: %s, before: %s", after, before)
	}
	k.refused(strings.Replace(text, "suspend: true", "suspend: false", 1),
		[]string{"apply", "--server-side", "--field-manager=somebody-else", "-f", "-"}, "conflict", ".spec.suspend")
	k.okIn(strings.Replace(text, "suspend: true", "suspend: false", 1),
		"apply", "--server-side", "--field-manager=somebody-else", "--force-conflicts", "-f", "-")
	if got := k.field("jobset/train", "{.spec.suspend}"); got != "false" {
		t.Errorf("suspend after a forced apply: %q", got)
	}
}

func TestClientSideApplyAndDiff(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	text := manifest("train", runOn, "suspend: true")
	k.okIn(text, "apply", "-f", "-")
	before := k.awaitStable("jobset/train")
	if out := k.okIn(text, "apply", "-f", "-"); !strings.Contains(out, "unchanged") {
		t.Errorf("second apply: %s", out)
	}
	if after := k.version("jobset/train"); after != before {
		t.Errorf("generation/resourceVersion after the second apply: %s, before: %s", after, before)
	}
	if r := k.run(text, "diff", "-f", "-"); r.code != 0 {
		t.Errorf("diff of an unchanged manifest: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	changed := strings.Replace(text, "suspend: true", "suspend: false\n  ttlSecondsAfterFinished: 60", 1)
	if r := k.run(changed, "diff", "-f", "-"); r.code != 1 || !strings.Contains(r.stdout, "+  ttlSecondsAfterFinished: 60") {
		t.Errorf("diff of a changed manifest: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if after := k.version("jobset/train"); after != before {
		t.Errorf("diff changed the object: %s, before: %s", after, before)
	}
	k.okIn(changed, "apply", "-f", "-")
	if got := k.field("jobset/train", "{.spec.suspend}/{.spec.ttlSecondsAfterFinished}"); got != "false/60" {
		t.Errorf("suspend/ttl after apply: %s", got)
	}
}

func TestPatchesOfAllKindsAndEdit(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "apply", "-f", "-")
	ttl := func(want string) {
		t.Helper()
		if got := k.field("jobset/train", "{.spec.ttlSecondsAfterFinished}"); got != want {
			t.Errorf("ttlSecondsAfterFinished: got %q, want %s", got, want)
		}
	}
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"ttlSecondsAfterFinished":10}}`)
	ttl("10")
	k.ok("patch", "jobset", "train", "--type=json", "-p", `[{"op":"replace","path":"/spec/ttlSecondsAfterFinished","value":20}]`)
	ttl("20")
	// A strategic merge patch reaches into the list by its key and leaves the rest of the item alone.
	k.ok("patch", "jobset", "train", "--type=strategic", "-p",
		`{"spec":{"ttlSecondsAfterFinished":30,"replicatedJobs":[{"name":"workers","template":{"spec":{"template":{"spec":{"nodeSelector":{"pool":"a"}}}}}}]}}`)
	ttl("30")
	if got := k.field("jobset/train", "{.spec.replicatedJobs[0].template.spec.template.spec.nodeSelector.pool}/{.spec.replicatedJobs[0].replicas}"); got != "a/2" {
		t.Errorf("node selector and replicas after the strategic merge patch: %s, want a/2", got)
	}
	k.okIn("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec: {ttlSecondsAfterFinished: 40}\n",
		"apply", "--server-side", "--force-conflicts", "-f", "-")
	ttl("40")

	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/ttlSecondsAfterFinished: 40/ttlSecondsAfterFinished: 50/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.env = append(k.env, "KUBE_EDITOR="+editor)
	k.ok("edit", "jobset", "train")
	ttl("50")
	k.ok("annotate", "jobset", "train", "note=x")
	k.ok("label", "jobset", "train", "team=a")
	if got := k.ok("get", "jobsets", "-l", "team=a", "-o", "name"); strings.TrimSpace(got) != "jobset.jobset.x-k8s.io/train" {
		t.Errorf("label selector finds %q", got)
	}
}

func TestStatusIsASubresource(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "managedBy: example.com/other"), "apply", "-f", "-")
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"status":{"restarts":7}}`)
	if got := k.field("jobset/train", "{.status.restarts}"); got != "" {
		t.Errorf("a patch of the main resource changed the status: restarts %q", got)
	}
	generation := k.field("jobset/train", "{.metadata.generation}")
	k.ok("patch", "jobset", "train", "--subresource=status", "--type=merge", "-p",
		`{"metadata":{"labels":{"x":"y"}},"spec":{"suspend":true},"status":{"restarts":7}}`)
	got := k.field("jobset/train", "{.status.restarts}/{.spec.suspend}/{.metadata.labels.x}/{.metadata.generation}")
	if want := "7///" + generation; got != want {
		t.Errorf("restarts/suspend/label/generation after a patch of the status: %s, want %s", got, want)
	}
	k.refused("", []string{"patch", "jobset", "train", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Completed","status":"Maybe","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
		"status.conditions[0].status", `Unsupported value: "Maybe"`)
}

func TestDryRunAndStrictDecoding(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "--dry-run=server", "-f", "-")
	if got := k.ok("get", "jobsets", "-o", "name"); got != "" {
		t.Errorf("a dry run stored %s", got)
	}
	k.refused(manifest("train", runOn, "maxRestart: 3"), []string{"create", "-f", "-"}, `unknown field "spec.maxRestart"`)
	k.refused(manifest("train", runOn, "successPolicy: {operator: Most}"), []string{"create", "-f", "-"},
		"spec.successPolicy.operator", "Unsupported value", `"All"`, `"Any"`)
	k.refused(manifest("train", runOn, "suspend: 3"), []string{"create", "--validate=false", "-f", "-"}, "suspend")
}

func TestWarningsReachTheUser(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	r := k.run(manifest("train", runOn, "suspend: true", "startupPolicy: {startupPolicyOrder: InOrder}", "failurePolicy: {maxRestarts: -1}"), "create", "-f", "-")
	if r.code != 0 {
		t.Fatalf("create: %s", r.stderr)
	}
	for _, path := range []string{"spec.startupPolicy", "spec.failurePolicy.maxRestarts"} {
		if !strings.Contains(r.stderr, "Warning: "+path) {
			t.Errorf("no warning for %s in %q", path, r.stderr)
		}
	}
}

func TestDefaultsThatUpstreamStores(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true", "failurePolicy: {rules: [{action: FailJobSet}]}"), "create", "-f", "-")
	got := strings.Split(k.field("jobset/train", strings.Join([]string{
		"{.spec.replicatedJobs[0].groupName}", "{.spec.replicatedJobs[0].template.spec.completionMode}",
		"{.spec.replicatedJobs[0].template.spec.template.spec.restartPolicy}", "{.spec.network.enableDNSHostnames}",
		"{.spec.network.publishNotReadyAddresses}", "{.spec.successPolicy.operator}", "{.spec.startupPolicy.startupPolicyOrder}",
		"{.spec.failurePolicy.restartStrategy}", "{.spec.failurePolicy.rules[0].name}", "{.metadata.generation}",
	}, ",")), ",")
	want := []string{"default", "Indexed", "OnFailure", "true", "true", "All", "AnyOrder", "Recreate", "failurePolicyRule0", "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestWatchAndFieldSelectors(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("one", runShort)+"---\n"+manifest("two", runOn, "suspend: true"), "create", "-f", "-")
	k.wait("--for=condition=Completed", "jobset/one")
	for selector, want := range map[string]string{
		"metadata.name=two":               "two",
		"status.terminalState=Completed":  "one",
		"status.terminalState!=Completed": "two",
		"spec.suspend=true":               "two",
		"spec.suspend=false":              "one",
	} {
		if got := k.ok("get", "jobsets", "--field-selector", selector, "-o", "jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("field selector %s: got %q, want %q", selector, got, want)
		}
	}
	k.refused("", []string{"get", "jobsets", "--field-selector", "spec.ttl=1"}, "spec.ttl", "status.terminalState")
	// The watch of kubectl starts with what exists and ends by itself.
	watch := k.ok("get", "jobsets", "--watch", "--output-watch-events", "--request-timeout=3s", "-o", "jsonpath={.type} {.object.metadata.name}{'\\n'}")
	for _, want := range []string{"ADDED one", "ADDED two"} {
		if !strings.Contains(watch, want) {
			t.Errorf("watch does not show %q:\n%s", want, watch)
		}
	}
}
