// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// inTwoClusters makes the set one of MultiKueue, with quota here, and its Workload one with that status.
func inTwoClusters(suspended bool, status map[string]any, clusters ...*unstructured.Unstructured) *Evidence {
	e := inQueue(func(k *Kueue) {
		k.Workload = kueueObject("Workload", "jobset-train", map[string]any{"queueName": "research"}, kueueCondition("QuotaReserved", "True", ""))
		content := k.Workload.Object["status"].(map[string]any)
		for key, value := range status {
			content[key] = value
		}
		if !suspended {
			content["conditions"] = append(content["conditions"].([]any), kueueCondition("Admitted", "True", ""))
		}
		k.Clusters = clusters
	})
	e.JobSet.Spec.ManagedBy = ptr.To(jobsetv1alpha2.MultiKueueControllerName)
	e.JobSet.Spec.Suspend = ptr.To(suspended)
	e.Jobs, e.Pods, e.JobSet.Status.ReplicatedJobsStatus = nil, nil, nil
	for _, rj := range e.JobSet.Spec.ReplicatedJobs {
		e.JobSet.Status.ReplicatedJobsStatus = append(e.JobSet.Status.ReplicatedJobsStatus, jobsetv1alpha2.ReplicatedJobStatus{Name: rj.Name, Ready: *rj.Replicas, Active: *rj.Replicas})
	}
	return e
}

func check(state, message string) []any {
	return []any{map[string]any{"name": "multikueue", "state": state, "message": message}}
}

var (
	inEast  = map[string]any{"clusterName": "east", "admissionChecks": check("Ready", `The workload got reservation on "east"`)}
	forEast = map[string]any{"nominatedClusterNames": []any{"east", "west"}, "admissionChecks": check("Pending", "")}
	nowhere = map[string]any{"admissionChecks": check("Pending", "")}
)

func worker(status, message string) *unstructured.Unstructured {
	return kueueObject("MultiKueueCluster", "east", map[string]any{}, kueueCondition("Active", status, message))
}

func multiKueueCases() map[string]diagnosisCase {
	return map[string]diagnosisCase{
		"the set runs in a worker cluster": {
			evidence: inTwoClusters(false, inEast, worker("True", "Connected")), want: ManagedByOther, further: []Cause{Running},
			words: []string{"Kueue runs the set in the cluster east"},
		},
		"the name of the worker cluster may not be read": {
			evidence: func() *Evidence { e := inTwoClusters(false, inEast); e.Kueue = Kueue{Served: true}; return e }(), want: ManagedByOther, further: []Cause{Running},
			words: []string{"Kueue runs the set in another cluster; status.clusterName of its Workload names it"},
		},
		"there is no Workload at the manager": {
			evidence: func() *Evidence { e := inTwoClusters(false, inEast); e.Kueue.Workload = nil; return e }(), want: ManagedByOther, further: []Cause{Running},
			words: []string{"in another cluster once a Workload exists for it, and there is none"},
		},
		"the worker cluster is away": {
			evidence: inTwoClusters(false, inEast, worker("False", "connection refused")), want: WorkerClusterUnreachable, further: []Cause{ManagedByOther, Running},
			words: []string{"no connection to the worker cluster east: connection refused; it was to run the set, and the status here may be old"},
		},
		"the set waits for quota in a worker cluster": {
			evidence: inTwoClusters(true, forEast, worker("True", "Connected")), want: WorkerClusterPending,
			words: []string{"the quota is reserved here, and the set waits for quota in another cluster (east, west)"},
		},
		"no worker cluster is nominated": {
			evidence: inTwoClusters(true, nowhere, worker("True", "Connected")), want: AdmissionCheckPending,
			words: []string{"the admission check multikueue is not ready; Kueue has nominated no worker cluster yet: it reaches none"},
		},
		"no worker cluster is reached": {
			evidence: inTwoClusters(true, nowhere, worker("False", "dial tcp: refused")), want: WorkerClusterUnreachable, further: []Cause{AdmissionCheckPending},
			words: []string{"no connection to the worker cluster east: dial tcp: refused"},
		},
		"the set waits for quota at the manager": {
			evidence: func() *Evidence {
				e := inTwoClusters(true, nowhere)
				e.Kueue.Workload = kueueObject("Workload", "jobset-train", map[string]any{}, kueueCondition("QuotaReserved", "False", "insufficient quota for cpu"))
				return e
			}(), want: QuotaNotReserved, words: []string{"the queue research has no quota for the set: insufficient quota for cpu"},
		},
	}
}

// Only what can be run is suggested: the command for the other cluster names it.
func TestCommandsNameTheWorkerCluster(t *testing.T) {
	for want, e := range map[string]*Evidence{
		"kubectl jobset -n team why train  # in the cluster east":               inTwoClusters(false, inEast),
		"kubectl -n team describe workload jobset-train  # in the cluster east": inTwoClusters(true, forEast),
	} {
		if got := Diagnose(e).Findings[0].Commands; !slices.Contains(got, want) {
			t.Errorf("got the commands %q, want %q among them", got, want)
		}
	}
}

// What the worker cluster has restarted is counted here, and its history is there.
func TestHistoryIsInTheWorkerCluster(t *testing.T) {
	e := inTwoClusters(false, inEast)
	e.JobSet.Status.Attempts, e.JobSet.Status.Restarts = nil, 1
	var all []string
	for _, f := range Diagnose(e).Findings {
		all = append(all, f.Summary)
	}
	if got, want := strings.Join(all, "\n"), "restarted 1 time (the cluster east keeps the history of attempts)"; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
