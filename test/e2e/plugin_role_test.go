// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// actorRole grants acting on sets, and of what a diagnosis reads no more than the sets.
const actorRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: actor}
rules:
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [get]}
- {apiGroups: [jobset.x-k8s.io], resources: [jobsets/restart, jobsets/suspend], verbs: [create]}
`

// actor is an account that may read and act on sets, and may not read Jobs, pods and events.
func (k *kubectl) actor(name string) *kubectl {
	k.Helper()
	k.okIn(actorRole, "create", "-f", "-")
	actor := k.account(name, "")
	k.ok("create", "rolebinding", name, "--role=actor", "--serviceaccount="+k.namespace+":"+name)
	actor.mayEventually("create", "jobsets.jobset.x-k8s.io", "--subresource=restart")
	return actor
}

// TestOperatorRoleExplainsSets calls the commands that read with the role for people on call, and with less.
func TestOperatorRoleExplainsSets(t *testing.T) {
	tier.OnRequest(t, "waits for caches of authorization")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	k.okIn(strings.Replace(manifest("broken", `jobset-apiserver.io/kwok-start-after: "1h"`), "name: train", "name: broken", 1), "create", "-f", "-")
	operator := k.operator("oncall")
	for _, args := range [][]string{{"tree", "train"}, {"why", "train"}, {"top", "train"}, {"timeline", "train"}, {"logs", "train", "--tail=1"}} {
		operator.eventually(func() string { // the authorizer learns of new bindings by watching
			r := operator.plugin(args...)
			if strings.Contains(strings.ToLower(r.stdout+r.stderr), "forbidden: user") || strings.Contains(r.stdout, "cannot read") {
				return strings.Join(args, " ") + ": " + r.stdout + r.stderr
			}
			return ""
		})
	}
	r := k.actor("actor").plugin("why", "broken")
	if r.code != 0 || !strings.Contains(r.stdout, "cause unknown: cannot read pods, jobs and events") || !strings.Contains(r.stdout, "jobset-operator") {
		t.Errorf("exit code %d, without permission to read pods:\n%s%s", r.code, r.stdout, r.stderr)
	}
}
