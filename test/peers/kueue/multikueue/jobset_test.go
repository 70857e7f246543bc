// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"strings"
	"testing"
)

// A set that is created at the manager runs at the worker, is restarted there, and completes at the manager.
func TestJobSetRunsAtTheWorker(t *testing.T) {
	s := begin(t, 4)
	s.jobSet("train")
	s.runs("train")
	if jobs := s.manager.OK("get", "jobs,pods,services", "-o", "name"); jobs != "" {
		t.Errorf("exist at the manager: %s", jobs)
	}
	s.says("why train", "Kueue runs the set in the cluster east", "runs: 2 of 2 jobs ready", "why train # in the cluster east")
	s.says("list", "js/train Running 2/2")
	s.says("timeline train", "remote", "the set runs in the cluster east, which has its attempts")
	s.says("tree train", "Kueue runs the set in another cluster")
	s.says("events train", `The workload got reservation on "east"`)
	if said := s.manager.PluginOK("timeline", "train"); strings.Contains(said, "this server keeps no history") {
		t.Errorf("timeline:\n%s", said)
	}

	s.ends("jobset.sigs.k8s.io/job-index=0", "failed")
	s.manager.Awaits("jobset/train", "{.status.restarts} {.status.restartsCountTowardsMax}", "1 1")
	s.runs("train")
	s.says("why train", "restarted 1 time (the cluster east keeps the history of attempts)")

	s.ends("jobset.sigs.k8s.io/jobset-name=train", "succeeded")
	s.manager.Awaits("jobset/train", "{.status.terminalState} {.status.replicatedJobsStatus[0].succeeded}", "Completed 2")
	s.gone("jobset/train")
	s.says("timeline train", "Completed", "the set ran in the cluster east")
	s.says("why train", "completed")
}

// A set that fails at the worker fails at the manager, with the message of the worker.
func TestJobSetFailsAtTheWorker(t *testing.T) {
	s := begin(t, 4)
	s.jobSet("train")
	s.runs("train")
	for restarts := range 2 {
		s.ends("jobset.sigs.k8s.io/jobset-name=train", "failed")
		if restarts == 0 {
			s.manager.Awaits("jobset/train", "{.status.restarts}", "1")
			s.runs("train")
		}
	}
	s.manager.Awaits("jobset/train", "{.status.terminalState}", "Failed")
	s.gone("jobset/train")
	s.says("list", "js/train Failed")
	s.says("why train", "train-workers-")
}

// Users delete and cancel a set at the manager, whether it waits or runs. What they cannot do there, the answer says what to do instead.
func TestJobSetIsStoppedAtTheManager(t *testing.T) {
	s := begin(t, 4)
	for _, name := range []string{"deleted", "cancelled", "waiting"} {
		s.jobSet(name)
		if name != "waiting" {
			s.runs(name)
		}
	}
	s.says("why waiting", "QuotaNotReserved", "the queue team has no quota for the set")
	s.says("timeline waiting", "queued")
	for action, want := range map[string]string{
		"restart": "restart it in the cluster that status.clusterName of its Workload names", "suspend": "set spec.active of its Workload to false",
		"resume": "set spec.active of its Workload to true", "retry": "recreate the JobSet instead",
	} {
		if r := s.manager.Plugin(action, "cancelled"); r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: exit code %d, %s\nwant %s", action, r.Code, r.Stderr, want)
		}
	}
	s.manager.PluginOK("cancel", "waiting", "--yes")
	s.manager.PluginOK("cancel", "cancelled", "--yes", "--reason=wrong data")
	s.manager.OK("delete", "jobset", "deleted")
	for _, name := range []string{"deleted", "cancelled", "waiting"} {
		s.gone("jobset/" + name)
	}
	s.says("why cancelled", "Cancelled", "wrong data")
	s.manager.Awaits("clusterqueue/"+s.manager.Namespace, "{.status.flavorsReservation[0].resources[0].total}", "0")
	s.manager.Awaits("jobset/cancelled", "{.status.terminalState}", "Failed")
}

// Kueue reverts an edit of spec.suspend. A Workload that is deactivated stops the set, and the copy is deleted; it begins again later.
func TestJobSetIsDeactivated(t *testing.T) {
	s := begin(t, 4)
	s.jobSet("train")
	s.runs("train")
	first := s.worker.Field("jobset/train", "{.metadata.uid}")
	s.manager.OK("patch", "jobset", "train", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	s.runs("train")
	if got := s.worker.Field("jobset/train", "{.metadata.uid}"); got != first {
		t.Errorf("the copy is %q, was %q", got, first)
	}
	workload := s.manager.Field("workloads", "{.items[0].metadata.name}")
	active := func(active string) {
		s.manager.OK("patch", "workload", workload, "--type=merge", "-p", `{"spec":{"active":`+active+`}}`)
	}
	active("false")
	s.gone("jobset/train")
	s.says("why train", "WorkloadDeactivated")
	s.manager.Awaits("clusterqueue/"+s.manager.Namespace, "{.status.flavorsReservation[0].resources[0].total}", "0")
	active("true")
	s.worker.Awaits("jobset/train", "{.status.replicatedJobsStatus[0].ready}", "2")
	s.runs("train")
	s.says("timeline train", "remote", "Kueue has evicted it before")
}

// A set waits at the manager for a worker without quota.
func TestJobSetWaitsForTheWorker(t *testing.T) {
	s := begin(t, 1)
	s.jobSet("train")
	s.says("why train", "WorkerClusterPending", "waits for quota in another cluster (east)")
	s.says("timeline train", "queued")
	s.worker.OK("patch", "clusterqueue", s.worker.Namespace, "--type=json", "-p", `[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":2}]`)
	s.runs("train")
}

// A set goes on while the worker is away, and the manager learns afterwards what became of it.
func TestWorkerIsAway(t *testing.T) {
	s := begin(t, 4)
	s.jobSet("train")
	s.runs("train")
	link.set(true)
	defer link.set(false)
	s.ends("jobset.sigs.k8s.io/jobset-name=train", "succeeded")
	s.worker.Awaits("jobset/train", "{.status.terminalState}", "Completed")
	if got := s.manager.Field("jobset/train", "{.status.terminalState}"); got != "" {
		t.Errorf("the manager has %q from a worker that is away", got)
	}
	s.jobSet("second")
	s.says("why second", "Kueue has nominated no worker cluster yet")
	link.set(false)
	s.manager.Awaits("jobset/train", "{.status.terminalState}", "Completed")
	s.runs("second")
}
