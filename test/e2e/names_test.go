// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestNamesThatOthersHave has a Service with the name of a set, and two sets one of which needs the name of the other.
// Both are events, and what was missing comes once the name is free.
func TestNamesThatOthersHave(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	set := func(name string) string {
		return fmt.Sprintf("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: %s}\n"+
			"spec: {replicas: 1, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox}]}}}}\n", name)
	}
	k.okIn("apiVersion: v1\nkind: Service\nmetadata: {name: serve}\nspec: {clusterIP: None}\n", "create", "-f", "-")
	k.okIn(set("a-0"), "create", "-f", "-")
	k.wait("--for=condition=Available", "lws/a-0")
	k.okIn(set("serve"), "create", "-f", "-")
	k.okIn(set("a"), "create", "-f", "-")
	for name, note := range map[string]string{
		"serve": "Failed to create headless service serve: a Service with this name exists and does not belong to the LeaderWorkerSet",
		"a":     "Failed to create worker statefulset for leader pod a-0: a StatefulSet with this name exists and does not belong to the pod",
	} {
		k.eventually(func() string {
			if got := k.ok("get", "events", "--field-selector=reason=FailedCreate,involvedObject.name="+name, "-o", "jsonpath={.items[*].message}"); got != note {
				return fmt.Sprintf("events about %s: %q, want %q", name, got, note)
			}
			return ""
		})
	}
	k.ok("delete", "service", "serve")
	k.eventually(func() string {
		if r := k.run("", "get", "service", "serve", "-o", "jsonpath={.metadata.ownerReferences[0].kind}"); r.stdout != "LeaderWorkerSet" {
			return fmt.Sprintf("the Service belongs to %q: %s", r.stdout, r.stderr)
		}
		return ""
	})
}

// TestNamesThatOthersNeed creates objects whose children would have the same names. The one that comes later has a condition. Only the Service
// of a JobSet is a warning.
func TestNamesThatOthersNeed(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	k := newKubectl(t)
	jobSet := func(name, replicatedJob string) string {
		return fmt.Sprintf("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\n"+
			"spec: {suspend: true, replicatedJobs: [{name: %s, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}}]}\n", name, replicatedJob)
	}
	sequence := "apiVersion: batch.jobset-apiserver.io/v1alpha1\nkind: SequentialJob\nmetadata: {name: etl}\nspec: {steps: [{name: one, jobSet: {" +
		"spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}}]}}}]}\n"
	for _, c := range []struct{ manifest, object, warning, condition string }{
		{manifest: jobSet("a", "b-w")},
		{manifest: jobSet("a-b", "w"), object: "jobset/a-b", condition: "ChildNameConflict"},
		{manifest: jobSet("etl-0", "x")},
		{manifest: sequence, object: "sequentialjob/etl", condition: "Available=False"},
		{
			manifest: strings.Replace(jobSet("b", "w"), "suspend: true", "suspend: true, network: {subdomain: a}", 1),
			warning:  `the JobSet "a" needs a Service of the same name, "a"; pods of the one that comes later have no DNS names; use another spec.network.subdomain`,
		},
	} {
		r := k.run(c.manifest, "create", "-f", "-")
		want := ""
		if c.warning != "" {
			want = "Warning: metadata.name: " + c.warning + "\n"
		}
		if r.code != 0 || r.stderr != want {
			t.Errorf("code %d, warnings %q, want %q", r.code, r.stderr, want)
		}
		if c.object != "" {
			k.wait(c.object, "--for=condition="+c.condition)
		}
	}
	if got := k.field("sequentialjob/etl", `{.status.conditions[?(@.type=="Available")].reason}`); got != "NameConflict" {
		t.Errorf("the sequence is unavailable because of %s", got)
	}
}
