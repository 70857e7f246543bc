// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The states of a report that is about a set which cannot be read. All others are phases.
const (
	stateUnknown  = "Unknown"
	stateNotFound = "NotFound"
)

// rule looks for one kind of cause.
type rule func(*diagnosis) []Finding

// rules are the rules that can hold in each state. A state that explains itself has few: a user does not ask what is wrong with the pods of
// a suspended set.
var rules = map[string][]rule{
	stateUnknown:            {storeRefused, apiServiceUnavailable, nodesLost, schedulingRefused, containersWaiting},
	stateNotFound:           {notFound, childrenBlocked},
	helper.PhaseTerminating: {deletion, childrenBlocked, nodesLost},
	helper.PhaseCompleted:   {completed},
	helper.PhaseFailed:      {failed, restartRulesDropped, permissionMissing, serviceTrouble, hostnamesDisabled},
	helper.PhaseSuspended:   {managedByOther, olderThanNamespace, heldAfterRestore, queued, suspendedBy, controllerGone},
}

// running are the rules of a set that should run.
var running = []rule{
	managedByOther, olderThanNamespace, heldAfterRestore, controllerGone, nameTaken, creationRefused, jobSuspended, podsRefused,
	childrenBlocked, permissionMissing,
	nodesLost, terminatingPods, domainsPending, domainsSearched, domainRoom, schedulingRefused, restartRulesDropped, podGroups, gangs,
	containersWaiting, podsFailed, serviceTrouble,
	hostnamesDisabled, failedAgain, dependencies, startupOrder, health,
}

// runningElsewhere are the rules of a set that Kueue runs in another cluster. Its Jobs and pods are there.
var runningElsewhere = []rule{managedByOther, dependencies, startupOrder, health}

// explain reads an object of a kind and what explains its state, and explains it.
func explain(ctx context.Context, c *cli.Clients, of *kind, name string, diagnose func(*Evidence) *Report) (*Report, error) {
	evidence, err := load(ctx, c, of, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", of.Names[0], name, err)
	}
	return diagnose(evidence), nil
}

// Diagnose explains the state of the set. It finds something in every case, also that all is well.
func Diagnose(e *Evidence) *Report {
	d := newDiagnosis(e)
	s := d.summary()
	apply, known := rules[s.State]
	switch {
	case !known && inMultiKueue(e.subject()):
		apply = runningElsewhere
	case !known:
		apply = running
	}
	r := d.report(s.Phase, apply)
	r.Jobs, r.Notes = &s.Jobs, slices.Concat(notes(e.JobSet), endpointsByCluster(e.JobSet), avoidedNodes(e.JobSet, e.Now), queueIgnored(e),
		quotaReclaimed(e), drainsBlocked(e))
	return r
}

// report applies rules, and puts what they found in order.
func (d *diagnosis) report(phase snapshot.Phase, apply []rule) *Report {
	r := &Report{Namespace: d.Namespace, Name: d.Name, Phase: phase, NotLookedAt: d.NotLookedAt}
	for _, find := range apply {
		r.Findings = append(r.Findings, find(d)...)
	}
	r.Findings = d.addReported(d.withoutDoubt(sorted(r.Findings)))
	if first := r.Findings[0].Cause; !first.Normal() {
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Cause == Starting })
	}
	return r
}

// summary returns the state of the set, as `kubectl get jobsets -o wide` shows it.
func (d *diagnosis) summary() snapshot.Summary {
	if d.JobSet != nil {
		return snapshot.Summarize(d.JobSet)
	}
	return snapshot.Summary{Phase: d.unreadPhase()}
}

// unreadPhase is the state in the report about an object that could not be read.
func (d *diagnosis) unreadPhase() snapshot.Phase {
	if apierrors.IsNotFound(d.Unread) && !isNotServed(d) {
		return snapshot.Phase{State: stateNotFound}
	}
	return snapshot.Phase{State: stateUnknown}
}

// restarts returns whether Jobs of an earlier attempt are being replaced. The status may not show that yet.
func (d *diagnosis) restarts() bool {
	return d.JobSet != nil && d.summary().State == helper.PhaseRestarting || len(d.previous) > 0 && !d.allUp()
}

// endCondition returns the condition that ended the set. One whose status has only a terminal state gets a condition that
// says no more than that.
func (d *diagnosis) endCondition() *metav1.Condition {
	phase, c := helper.Finished(d.JobSet)
	if c == nil {
		c = &metav1.Condition{Type: phase, Status: metav1.ConditionTrue, Reason: phase,
			LastTransitionTime: metav1.NewTime(helper.EndTime(d.JobSet))}
	}
	return c
}

// tally returns the numbers of Jobs of the set: how many there should be, and how many are ready or have succeeded.
func (d *diagnosis) tally() (want, readyJobs, succeeded int) {
	counts := helper.CountJobs(d.JobSet)
	for i := range d.JobSet.Status.ReplicatedJobsStatus {
		succeeded += int(d.JobSet.Status.ReplicatedJobsStatus[i].Succeeded)
	}
	return int(counts.Wanted), int(counts.Up) - succeeded, succeeded
}

// allUp reports whether every Job is ready or has succeeded. The status of the set may be older than the pods.
func (d *diagnosis) allUp() bool {
	want, readyJobs, succeeded := d.tally()
	if readyJobs+succeeded != want {
		return false
	}
	for _, pod := range d.live {
		if job := d.jobByID[ownerUID(pod)]; job != nil && !snapshot.PodReady(pod) && !jobEnded(job) && job.Status.Ready != nil &&
			*job.Status.Ready+job.Status.Succeeded < podsWanted(job) {
			return false
		}
	}
	return true
}
