// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// state is one in which a set can be when a user asks for an action.
type state struct {
	// pod is the annotation of its pods, extra are lines of its spec, metadata are lines of its metadata.
	pod, extra, metadata string
	// prepare brings the set into the state once its summary is before.
	before  string
	prepare func(k *kubectl, set string)
	// held says that the first Job is not deleted before all actions were asked for.
	held bool
	// rest is the summary in the state, and after an action that changes nothing. If the state passes, that is passed.
	rest, passed string
	// cells are what comes of the actions. One that is not listed gets the answer of others.
	cells  map[string]cell
	others cell
}

// cell is what an action in a state leads to: the message of a refusal, or of an answer and the stable summary of the set.
type cell struct{ refused, answer, after string }

func refused(why string) cell           { return cell{refused: why} }
func changes(answer, after string) cell { return cell{answer: answer, after: after} }
func nothing(answer string) cell        { return cell{answer: answer} }

const (
	byOncall   = " (oncall: because)"
	startAfter = `jobset-apiserver.io/kwok-start-after: "1h"`

	restartedAs  = "the JobSet was restarted as attempt "
	suspendedIn  = "the JobSet was suspended, which ended attempt "
	cancelledIn  = "the JobSet was cancelled, which ended attempt "
	retriedAs    = "the JobSet was retried as attempt "
	notSuspended = "the JobSet is not suspended; nothing changed"
	notFinished  = "the JobSet has not finished, and only a failed JobSet can be retried; restart it instead"
	inQueue      = `queue "tenants" (label kueue.x-k8s.io/queue-name) decides when the JobSet runs`
	toResume     = ", and starts it as soon as there is quota; if its Workload was deactivated, set spec.active of the Workload to true"
	queueDecides = `queue "tenants" (label kueue.x-k8s.io/queue-name) decides when it runs`
	byOwner      = `the owner ConfigMap "owner" decides when the JobSet runs; `
	suspendedNow = "suspend restarts=%d Suspended/SuspendedJobs"
)

// states has the cells of the states in which a set may run or be suspended.
var states = map[string]state{
	"starting": {
		pod: startAfter, rest: "restarts=0 | 1 Start",
		cells: map[string]cell{
			"restart": changes(restartedAs+"2", "restarts=1 RestartingJobSet/RestartRequested | 1 Start → Restarted"+byOncall+" | 2 Requested"+byOncall),
			"suspend": changes(suspendedIn+"1", fmt.Sprintf(suspendedNow, 0)+" | 1 Start → Suspended"+byOncall),
			"resume":  nothing(notSuspended),
			"cancel":  changes(cancelledIn+"1", "restarts=0 Failed/Cancelled | 1 Start → Cancelled"+byOncall),
			"retry":   refused(notFinished),
		},
	},
	"running": {
		pod: runOn, rest: "restarts=0 | 1 Start, ready",
		cells: map[string]cell{
			"restart": changes(restartedAs+"2", "restarts=1 | 1 Start → Restarted"+byOncall+" | 2 Requested"+byOncall+", ready"),
			"suspend": changes(suspendedIn+"1", fmt.Sprintf(suspendedNow, 0)+" | 1 Start → Suspended"+byOncall),
			"resume":  nothing(notSuspended),
			"cancel":  changes(cancelledIn+"1", "restarts=0 Failed/Cancelled | 1 Start → Cancelled"+byOncall),
			"retry":   refused(notFinished),
		},
	},
	"restarting": {
		pod: runOn, before: "restarts=0 | 1 Start, ready", held: true,
		prepare: func(k *kubectl, set string) { k.answer(k.act("restart", set, `"reason":"before"`)) },
		rest:    "restarts=1 RestartingJobSet/RestartRequested | 1 Start → Restarted (earlier: before) | 2 Requested (earlier: before)",
		passed:  "restarts=1 | 1 Start → Restarted (earlier: before) | 2 Requested (earlier: before), ready",
		cells: map[string]cell{
			"restart": nothing("attempt 2, requested by earlier, is not ready yet; not restarted again; set spec.force to restart it"),
			"suspend": changes(suspendedIn+"2", fmt.Sprintf(suspendedNow, 1)+" | 1 Start → Restarted (earlier: before) | 2 Requested (earlier: before) → Suspended"+byOncall),
			"resume":  nothing(notSuspended),
			"cancel":  changes(cancelledIn+"2", "restarts=1 Failed/Cancelled | 1 Start → Restarted (earlier: before) | 2 Requested (earlier: before) → Cancelled"+byOncall),
			"retry":   refused(notFinished),
		},
	},
	"suspended": {
		pod: runOn, extra: "suspend: true", rest: fmt.Sprintf(suspendedNow, 0),
		cells: map[string]cell{
			"restart": refused("the JobSet is suspended; resume it instead"),
			"suspend": nothing("the JobSet is already suspended; nothing changed"),
			"resume":  changes("the JobSet was resumed as attempt 1", "restarts=0 | 1 Resume"+byOncall+", ready"),
			"cancel":  changes("the JobSet was cancelled while no attempt was running", fmt.Sprintf(suspendedNow, 0)+" Failed/Cancelled"),
			"retry":   refused("the JobSet is suspended, and only a failed JobSet can be retried; resume it instead"),
		},
	},
	"queued": {
		pod: runOn, metadata: "labels: {kueue.x-k8s.io/queue-name: tenants}", rest: "restarts=0 | 1 Start, ready",
		cells: map[string]cell{
			"restart": changes(restartedAs+"2", "restarts=1 | 1 Start → Restarted"+byOncall+" | 2 Requested"+byOncall+", ready"),
			"suspend": refused(inQueue + "; to suspend it, set spec.active of its Workload to false"),
			"resume":  refused(inQueue + toResume),
			"cancel":  changes(cancelledIn+"1", "restarts=0 Failed/Cancelled | 1 Start → Cancelled"+byOncall),
			"retry":   refused(notFinished),
		},
	},
	"waiting": { // for its queue
		pod: runOn, extra: "suspend: true", metadata: "labels: {kueue.x-k8s.io/queue-name: tenants}", rest: fmt.Sprintf(suspendedNow, 0),
		cells: map[string]cell{
			"restart": refused("the JobSet is suspended; " + queueDecides),
			"suspend": refused(inQueue + "; to suspend it, set spec.active of its Workload to false"),
			"resume":  refused(inQueue + toResume),
			"cancel":  changes("the JobSet was cancelled while no attempt was running", fmt.Sprintf(suspendedNow, 0)+" Failed/Cancelled"),
			"retry":   refused("the JobSet is suspended, and only a failed JobSet can be retried; " + queueDecides),
		},
	},
	"owned": {
		pod: runOn, metadata: "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: OWNER, controller: true}]",
		rest: "restarts=0 | 1 Start, ready",
		cells: map[string]cell{
			"restart": changes(restartedAs+"2", "restarts=1 | 1 Start → Restarted"+byOncall+" | 2 Requested"+byOncall+", ready"),
			"suspend": refused(byOwner + "suspend the owner instead"),
			"resume":  refused(byOwner + "resume the owner instead"),
			"cancel":  changes(cancelledIn+"1", "restarts=0 Failed/Cancelled | 1 Start → Cancelled"+byOncall),
			"retry":   refused(notFinished),
		},
	},
}

// finishedStates has the cells of the states in which nothing of a set runs any more, or not for long.
var finishedStates = map[string]state{
	"completed": {
		pod: runShort, rest: "restarts=0 Completed/AllJobsCompleted | 1 Start → Completed",
		cells: map[string]cell{
			"restart": refused("the JobSet has completed; there is nothing to restart; recreate it to run it again"),
			"suspend": refused("the JobSet has completed; there is nothing to suspend; recreate it to run it again"),
			"resume":  refused("the JobSet has completed; there is nothing to resume; recreate it to run it again"),
			"cancel":  refused("the JobSet has completed; there is nothing to cancel"),
			"retry":   refused("the JobSet has completed, and only a failed JobSet can be retried; recreate it to run it again"),
		},
	},
	"failed": {
		pod: fail, rest: "restarts=0 Failed/FailedJobs | 1 Start → Failed",
		cells: map[string]cell{
			"restart": refused("the JobSet has failed; there is nothing to restart; retry it instead"),
			"suspend": refused("the JobSet has failed; there is nothing to suspend; retry it instead"),
			"resume":  refused("the JobSet has failed; there is nothing to resume; retry it instead"),
			"cancel":  refused("the JobSet has failed; there is nothing to cancel"),
			// Its pods fail again.
			"retry": changes(retriedAs+"2", "restarts=1 Failed/FailedJobs | 1 Start → Failed | 2 Retry"+byOncall+" → Failed"),
		},
	},
	"turned-away": { // failed, and its queue has released it
		pod: fail, metadata: "labels: {kueue.x-k8s.io/queue-name: tenants}", rest: "restarts=0 Failed/FailedJobs | 1 Start → Failed",
		cells: map[string]cell{
			"restart": refused("the JobSet has failed; there is nothing to restart; recreate it to run it again"),
			"suspend": refused("the JobSet has failed; there is nothing to suspend; recreate it to run it again"),
			"resume":  refused("the JobSet has failed; there is nothing to resume; recreate it to run it again"),
			"cancel":  refused("the JobSet has failed; there is nothing to cancel"),
			"retry":   refused(`queue "tenants" (label kueue.x-k8s.io/queue-name) does not run a finished JobSet again; recreate the JobSet instead`),
		},
	},
	"cancelled": {
		pod: runOn, before: "restarts=0 | 1 Start, ready",
		prepare: func(k *kubectl, set string) { k.answer(k.act("cancel", set, `"reason":"before"`)) },
		rest:    "restarts=0 Failed/Cancelled | 1 Start → Cancelled (earlier: before)",
		cells: map[string]cell{
			"restart": refused("the JobSet has failed; there is nothing to restart; retry it instead"),
			"suspend": refused("the JobSet has failed; there is nothing to suspend; retry it instead"),
			"resume":  refused("the JobSet has failed; there is nothing to resume; retry it instead"),
			"cancel":  nothing(cancelledIn + "1"),
			"retry":   changes(retriedAs+"2", "restarts=1 | 1 Start → Cancelled (earlier: before) | 2 Retry"+byOncall+", ready"),
		},
	},
	"deleting": {
		pod: runOn, metadata: "finalizers: [example.com/hold]", before: "restarts=0 | 1 Start, ready",
		prepare: func(k *kubectl, set string) {
			k.ok("delete", "jobset", set, "--wait=false")
			k.Cleanup(func() {
				k.run("", "patch", "jobset", set, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			})
		},
		rest:   "restarts=0 | 1 Start, ready",
		others: refused("the JobSet is being deleted; recreate it after it is gone"),
	},
	"managed": {
		pod: runOn, extra: "managedBy: example.com/other", rest: "restarts=0",
		others: refused(`the JobSet is managed by the controller "example.com/other" (spec.managedBy); use that controller instead`),
	},
}

// matrix is all states.
func matrix() map[string]state {
	all := maps.Clone(states)
	maps.Copy(all, finishedStates)
	return all
}

// TestActionsInEveryState asks for each action in each state, as a user who may do nothing else to the sets.
func TestActionsInEveryState(t *testing.T) {
	tier.OnRequest(t, "65 sets in states that last for a time")
	t.Parallel()
	k := newKubectl(t)
	owner := k.ok("create", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	oncall, earlier := k.operator("oncall"), k.operator("earlier")
	all := matrix()
	names := slices.Sorted(maps.Keys(all))
	var manifests strings.Builder
	for _, name := range names {
		for action := range actionKinds {
			manifests.WriteString(strings.ReplaceAll(all[name].manifest(name+"-"+action), "OWNER", owner) + "---\n")
		}
	}
	k.okIn(manifests.String(), "create", "-f", "-")
	for _, name := range names {
		k.prepareAll(name, all[name], earlier)
		for action := range actionKinds {
			k.awaitSummary(name+"-"+action, all[name].rest)
		}
		for action := range actionKinds {
			ask(oncall, name+"-"+action, action, all[name].cell(action))
		}
		if all[name].held {
			for action := range actionKinds {
				k.letGo("job/" + name + "-" + action + "-workers-0")
			}
		}
	}
	for _, name := range names {
		for action := range actionKinds {
			k.awaitSummary(name+"-"+action, cmp.Or(all[name].cell(action).after, all[name].passed, all[name].rest))
		}
	}
	// What was cancelled or suspended has no pods that run.
	for _, set := range []string{"running-cancel", "running-suspend", "starting-cancel", "queued-cancel"} {
		k.eventually(func() string {
			if pods := k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name="+set, "-o", "name"); pods != "" {
				return "pods of " + set + ": " + pods
			}
			return ""
		})
	}
	if jobs := k.ok("get", "jobs", "-l", "jobset.sigs.k8s.io/jobset-name=running-restart", "-o", `jsonpath={.items[*].metadata.labels.jobset\.sigs\.k8s\.io/restart-attempt}`); jobs != "1 1" {
		t.Errorf("restart attempts of the Jobs of the restarted set: got %q, want 1 1", jobs)
	}
}

// cell is what comes of the action.
func (s state) cell(action string) cell {
	if c, listed := s.cells[action]; listed {
		return c
	}
	return s.others
}

// manifest is a set that will reach the state, or can be prepared to.
func (s state) manifest(set string) string {
	var extra []string
	if s.extra != "" {
		extra = append(extra, s.extra)
	}
	text := manifest(set, s.pod, extra...)
	if s.metadata != "" {
		text = strings.Replace(text, "  name: "+set+"\n", "  name: "+set+"\n  "+s.metadata+"\n", 1)
	}
	return text
}
