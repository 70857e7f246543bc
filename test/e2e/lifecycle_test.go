// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestRunsToCompletion(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runShort), "apply", "-f", "-")
	k.wait("--for=condition=Completed", "jobset/train")
	k.wait("--for=jsonpath={.status.terminalState}=Completed", "jobset/train")

	if got := k.field("jobset/train", "{.status.replicatedJobsStatus[?(@.name=='workers')].succeeded}"); got != "2" {
		t.Errorf("succeeded Jobs: got %q, want 2", got)
	}
	got := strings.Fields(k.ok("get", "jobs", "-l", "jobset.sigs.k8s.io/jobset-name=train", "-o", "jsonpath={.items[*].metadata.name}"))
	if diff := cmp.Diff([]string{"train-workers-0", "train-workers-1"}, got); diff != "" {
		t.Errorf("names of the Jobs (-want +got):\n%s", diff)
	}
	if got := k.field("service/train", "{.spec.clusterIP}"); got != "None" {
		t.Errorf("the Service must be headless, clusterIP is %q", got)
	}
	k.eventually(func() string {
		events := k.ok("events", "--for", "jobset/train")
		if !strings.Contains(events, "AllJobsCompleted") {
			return "no event AllJobsCompleted in:\n" + events
		}
		return ""
	})
	if got := k.ok("describe", "jobset", "train"); !strings.Contains(got, "jobset completed successfully") {
		t.Errorf("describe does not show the condition:\n%s", got)
	}
}

func TestGetPrintsUpstreamColumnsAndMoreWhenWide(t *testing.T) {
	tier.OnRequest(t, "more cases of the life of a set")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runShort), "apply", "-f", "-")
	k.wait("--for=condition=Completed", "jobset/train")

	columns := func(out string) []string { return strings.Fields(strings.SplitN(out, "\n", 2)[0]) }
	narrow := []string{"NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"}
	if diff := cmp.Diff(narrow, columns(k.ok("get", "jobset"))); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	wide := append(narrow, "PHASE", "READY", "ATTEMPT", "REASON", "DURATION")
	if diff := cmp.Diff(wide, columns(k.ok("get", "jobset", "-o", "wide"))); diff != "" {
		t.Errorf("wide columns (-want +got):\n%s", diff)
	}
	row := strings.Fields(strings.SplitN(k.ok("get", "jobset", "train"), "\n", 3)[1])
	// SUSPENDED is blank: the manifest does not set it.
	if diff := cmp.Diff([]string{"train", "Completed", "0", "True"}, row[:4]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestJobFailureWithoutPolicyFailsTheSet(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", fail), "apply", "-f", "-")
	k.wait("--for=condition=Failed", "jobset/train")
	if got := k.field("jobset/train", "{.status.conditions[?(@.type=='Failed')].reason}"); got != "FailedJobs" {
		t.Errorf("reason: got %q, want FailedJobs", got)
	}
	if got := k.field("jobset/train", "{.status.terminalState}"); got != "Failed" {
		t.Errorf("terminal state: got %q, want Failed", got)
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "apply", "-f", "-")
	k.wait("--for=condition=Suspended", "jobset/train")
	jobs := func(want string) {
		t.Helper()
		k.eventually(func() string {
			if got := k.ok("get", "jobs", "-o", "jsonpath={.items[*].spec.suspend}"); got != want {
				return "suspend of the Jobs: " + got + ", want " + want
			}
			return ""
		})
	}
	jobs("true true")
	if pods := k.ok("get", "pods", "-o", "name"); pods != "" {
		t.Errorf("a suspended set has pods: %s", pods)
	}
	// Resuming and directing the pods in one write is what queueing systems do.
	k.ok("patch", "jobset", "train", "--type=json", "-p", `[
		{"op":"replace","path":"/spec/suspend","value":false},
		{"op":"add","path":"/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector","value":{"kubernetes.io/os":"linux"}}]`)
	jobs("false false")
	k.wait("--for=condition=Suspended=false", "jobset/train")
	if got := k.field("job/train-workers-0", `{.spec.template.spec.nodeSelector.kubernetes\.io/os}`); got != "linux" {
		t.Errorf("node selector of the resumed Job: got %q, want linux", got)
	}
	if got := k.ok("get", "jobsets", "--field-selector", "spec.suspend=true", "-o", "name"); got != "" {
		t.Errorf("field selector spec.suspend=true still finds %s", got)
	}
	k.ok("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	jobs("true true")
	k.eventually(func() string {
		if pods := k.ok("get", "pods", "-o", "name"); pods != "" {
			return "pods are left after suspending: " + pods
		}
		return ""
	})
}

func TestFinishedSetIsDeletedAfterItsTTL(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runShort, "ttlSecondsAfterFinished: 2"), "apply", "-f", "-")
	k.wait("--for=delete", "jobset/train")
	noChildren(k)
}

// noChildren waits until no child of any set is left in the namespace.
func noChildren(k *kubectl) {
	k.Helper()
	k.eventually(func() string {
		if left := k.ok("get", "jobs,pods,services", "-o", "name"); left != "" {
			return "left after deletion: " + left
		}
		return ""
	})
}

func TestDeletion(t *testing.T) {
	for name, policy := range map[string]string{"foreground": "foreground", "background": "background"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKubectl(t)
			k.okIn(manifest("train", runOn), "apply", "-f", "-")
			k.eventually(func() string {
				if got := k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "name"); strings.Count(got, "\n") != 2 {
					return "pods that run: " + got
				}
				return ""
			})
			k.delete("jobset", "train", "--cascade="+policy)
			if policy == "foreground" {
				// The set may vanish only after what it owns.
				if left := k.ok("get", "jobs,services", "-o", "name"); left != "" {
					t.Errorf("children outlive a set that was deleted in the foreground: %s", left)
				}
			}
			noChildren(k)
		})
	}
	t.Run("orphan keeps the Jobs", func(t *testing.T) {
		t.Parallel()
		k := newKubectl(t)
		k.okIn(manifest("train", runOn), "apply", "-f", "-")
		k.eventually(func() string {
			if got := k.ok("get", "jobs", "-o", "name"); strings.Count(got, "\n") != 2 {
				return "Jobs: " + got
			}
			return ""
		})
		k.delete("jobset", "train", "--cascade=orphan")
		owners := k.ok("get", "jobs", "-o", "jsonpath={.items[*].metadata.ownerReferences}")
		if owners != "" {
			t.Errorf("orphaned Jobs still have owners: %s", owners)
		}
	})
}

func TestNamespaceWithManySetsIsDeleted(t *testing.T) {
	tier.OnRequest(t, "more cases of the life of a set")
	k := newKubectl(t)
	var all strings.Builder
	const sets = 50
	for i := range sets {
		all.WriteString(manifest("train-"+string(rune('a'+i/26))+string(rune('a'+i%26)), runOn, "suspend: true"))
		all.WriteString("---\n")
	}
	k.okIn(all.String(), "apply", "-f", "-")
	k.eventually(func() string {
		if got := strings.Count(k.ok("get", "jobs", "-o", "name"), "\n"); got != 2*sets {
			return "not all Jobs exist yet"
		}
		return ""
	})
	k.ok("delete", "namespace", k.namespace, "--wait=false")
	k.wait("--for=delete", "namespace/"+k.namespace)
	if left := k.ok("get", "jobsets", "-o", "name"); left != "" {
		t.Errorf("sets are left in the deleted namespace: %s", left)
	}
}
