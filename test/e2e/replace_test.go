// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const backedOff = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec:
  replicas: 1
  paused: true
  revisionHistoryLimit: 3
  groupRestartBackoff: {baseSeconds: 5, maxSeconds: 50}
  leaderWorkerTemplate:
    size: 2
    maxGroupRestarts: 4
    workerTemplate: {spec: {containers: [{name: main, image: registry.example/vllm:v1}]}}
`

// replace does what a client does whose types lack the fields: it reads the object, changes a field and writes the whole object, again if a
// controller has changed it meanwhile. It returns the warnings.
func (k *kubectl) replace(object string, set func(map[string]any) error, lacking [][]string, args ...string) (warnings string) {
	k.Helper()
	k.eventually(func() string {
		content := map[string]any{}
		if err := json.Unmarshal([]byte(k.ok("get", object, "-o", "json", "--show-managed-fields")), &content); err != nil {
			k.Fatal(err)
		}
		for _, path := range lacking {
			if _, found, _ := unstructured.NestedFieldNoCopy(content, path...); !found {
				k.Errorf("%s has no %v", object, path)
			}
			unstructured.RemoveNestedField(content, path...)
		}
		if err := set(content); err != nil {
			k.Fatal(err)
		}
		body, err := json.Marshal(content)
		if err != nil {
			k.Fatal(err)
		}
		r := k.run(string(body), append([]string{"replace", "-f", "-"}, args...)...)
		warnings = r.stderr
		if r.code != 0 && !strings.Contains(r.stderr, "the object has been modified") {
			k.Fatalf("kubectl replace: %s", r.stderr)
		}
		if r.code != 0 {
			return r.stderr
		}
		return ""
	})
	return warnings
}

func TestReplaceKeepsFieldsThatUpstreamLacks(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(backedOff, "apply", "--server-side", "-f", "-")
	warnings := k.replace("lws/vllm", func(set map[string]any) error {
		return unstructured.SetNestedField(set, int64(2), "spec", "replicas")
	}, [][]string{
		{"spec", "paused"}, {"spec", "revisionHistoryLimit"}, {"spec", "groupRestartBackoff"}, {"spec", "leaderWorkerTemplate", "maxGroupRestarts"},
	})
	if want := "spec.groupRestartBackoff: keeps its value"; !strings.Contains(warnings, want) {
		t.Errorf("the warnings have no %q:\n%s", want, warnings)
	}
	const path = "{.spec.replicas} {.spec.paused} {.spec.revisionHistoryLimit} {.spec.groupRestartBackoff.maxSeconds} {.spec.leaderWorkerTemplate.maxGroupRestarts}"
	if got, want := k.field("lws/vllm", path), "2 true 3 50 4"; got != want {
		t.Errorf("after the update: %q, want %q", got, want)
	}
	// The applier still owns the fields, and removes one of them.
	k.okIn(strings.Replace(backedOff, "  revisionHistoryLimit: 3\n", "", 1), "apply", "--server-side", "--force-conflicts", "-f", "-")
	k.ok("patch", "lws", "vllm", "--type=merge", "-p", `{"spec":{"groupRestartBackoff":null}}`)
	if got, want := k.field("lws/vllm", path), "1 true   4"; got != want {
		t.Errorf("after removals: %q, want %q", got, want)
	}
}

func TestReplaceOfTheStatusKeepsTheHistory(t *testing.T) {
	tier.OnRequest(t, "a second case of replace")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "apply", "-f", "-")
	k.eventually(func() string {
		if k.field("jobset/train", "{.status.attempts[0].readyTime}") == "" {
			return "the first attempt is not ready"
		}
		return ""
	})
	k.awaitStable("jobset/train")
	before := k.field("jobset/train", "{.status.attempts}")
	k.replace("jobset/train", func(set map[string]any) error {
		condition := map[string]any{"type": "Seen", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
		return unstructured.SetNestedSlice(set, []any{condition}, "status", "conditions")
	}, [][]string{{"status", "attempts"}}, "--subresource=status")
	if diff := cmp.Diff(before, k.field("jobset/train", "{.status.attempts}")); diff != "" {
		t.Errorf("attempts (-before +after):\n%s", diff)
	}
	if got := k.field("jobset/train", `{.status.conditions[?(@.type=="Seen")].status}`); got != "True" {
		t.Errorf("the condition is %q", got)
	}
}
