// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// rights are what a user may do beside the actions; the kubectl calls are dry runs.
var rights = map[string]func(k *kubectl) result{
	"edit": func(k *kubectl) result {
		return k.run("", "patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`, "--dry-run=server")
	},
	"status": func(k *kubectl) result {
		return k.run("", "patch", "jobset", "train", "--subresource=status", "--type=merge", "-p", `{"status":{"restarts":7}}`, "--dry-run=server")
	},
	"delete": func(k *kubectl) result { return k.run("", "delete", "jobset", "train", "--dry-run=server") },
	"read":   func(k *kubectl) result { return k.run("", "get", "jobset", "train") },
	"read scale": func(k *kubectl) result {
		return k.run("", "get", "jobset", "train", "--subresource=scale")
	},
	"scale": func(k *kubectl) result {
		// Not with kubectl patch, which reads first.
		path := fmt.Sprintf("/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets/train/scale?dryRun=All", k.namespace)
		return k.run(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"train"},"spec":{"replicas":3}}`, "replace", "--raw", path, "-f", "-")
	},
}

// TestRolesDecideWhoMayAct asks as users of every role for every action. Forbidden is what the roles forbid; what they
// allow may still be refused, because of the state of the set.
func TestRolesDecideWhoMayAct(t *testing.T) {
	tier.Safety(t)
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	actions := slices.Sorted(maps.Keys(actionKinds))
	tests := map[string][]string{
		"view":            {"read", "read scale"},
		"edit":            append([]string{"delete", "edit", "read", "read scale", "scale"}, actions...),
		"admin":           append([]string{"delete", "edit", "read", "read scale", "scale"}, actions...),
		"jobset-operator": append([]string{"read"}, actions...),
		"":                nil,
	}
	for role, want := range tests {
		t.Run("role "+role, func(t *testing.T) {
			user := k.account("user-"+role+"x", role)
			user.T = t
			if role != "" {
				user.mayEventually("get", "jobsets.jobset.x-k8s.io")
			}
			var got []string
			check := func(what string, r result) {
				switch {
				case !strings.Contains(r.stderr, "(Forbidden)"):
					got = append(got, what)
				case !strings.Contains(r.stderr, `User "system:serviceaccount:`+k.namespace+":user-"+role+`x" cannot `):
					t.Errorf("%s is forbidden without saying so: %s", what, r.stderr)
				}
			}
			for what, call := range rights {
				check(what, call(user))
			}
			for _, action := range actions {
				check(action, user.actQuery(action, "train", "", "?dryRun=All"))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
		})
	}
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
}

func TestDryRunOfActionsChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("running", runOn)+"---\n"+manifest("failed", fail)+"---\n"+manifest("suspended", runOn, "suspend: true"), "create", "-f", "-")
	k.awaitSummary("running", "restarts=0 | 1 Start, ready")
	k.awaitSummary("failed", "restarts=0 Failed/FailedJobs | 1 Start → Failed")
	k.awaitSummary("suspended", "suspend restarts=0 Suspended/SuspendedJobs")
	sets := map[string]string{"restart": "running", "suspend": "running", "cancel": "running", "resume": "suspended", "retry": "failed"}
	answers := map[string]string{
		"restart": "the JobSet was restarted as attempt 2", "suspend": "the JobSet was suspended, which ended attempt 1",
		"cancel": "the JobSet was cancelled, which ended attempt 1", "resume": "the JobSet was resumed as attempt 1",
		"retry": "the JobSet was retried as attempt 2",
	}
	// The controller may still write to the status, but nothing that an action changes.
	stored := func() string {
		return k.ok("get", "jobsets", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.generation} {.metadata.annotations} "+
			"{.spec.suspend} {.status.restarts} {.status.terminalState} {.status.attempts[*].number} {.status.attempts[*].trigger} "+
			"{.status.attempts[*].outcome} {.status.attempts[*].user} {.status.attempts[*].endUser}{'\\n'}{end}")
	}
	before := stored()
	for action, set := range sets {
		if diff := cmp.Diff(answers[action], k.answer(k.actQuery(action, set, "", "?dryRun=All")).Message); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", action, set, diff)
		}
	}
	if diff := cmp.Diff(before, stored()); diff != "" {
		t.Errorf("dry runs have changed sets (-before +after):\n%s", diff)
	}
}

func TestActionsAreAuditedUnderTheirSubresources(t *testing.T) {
	tier.OnRequest(t, "reads the audit log of the shared server")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	oncall := k.operator("oncall")
	for _, action := range []string{"restart", "suspend", "resume", "cancel", "retry"} {
		if r := oncall.act(action, "train", `"reason":"because"`); r.code != 0 {
			t.Errorf("%s: %s", action, r.stderr)
		}
		k.eventually(func() string { return k.audited(action, "train", "because") })
	}
}

// audited looks for the line of an action that user oncall had done. It returns what is wrong.
func (k *kubectl) audited(action, set, reason string) string {
	type line struct {
		Verb           string
		User           struct{ Username string }
		ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
		ResponseStatus struct{ Code int }
		RequestObject  struct {
			Kind string
			Spec struct{ Reason string }
		}
	}
	var want line
	want.Verb, want.ResponseStatus.Code = "create", 201
	want.User.Username = fmt.Sprintf("system:serviceaccount:%s:oncall", k.namespace)
	want.ObjectRef.Resource, want.ObjectRef.Subresource, want.ObjectRef.Namespace, want.ObjectRef.Name = "jobsets", action, k.namespace, set
	want.RequestObject.Kind, want.RequestObject.Spec.Reason = actionKinds[action], reason

	content, err := os.ReadFile(auditLog(k.cluster))
	if err != nil {
		return err.Error()
	}
	for _, text := range strings.Split(string(content), "\n") {
		var got line
		if json.Unmarshal([]byte(text), &got) != nil || got.ObjectRef != want.ObjectRef {
			continue
		}
		return cmp.Diff(want, got)
	}
	return "no audit line of " + action
}
