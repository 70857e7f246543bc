// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// warnings returns what to report about children. The events API joins equal ones into a series.
func warnings(o Observed, p Plan, r Results) (events []Event) {
	warn := func(reason, note string) {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: reason, Note: note})
	}
	for _, refused := range r.RefusedResources {
		warn("FailedResourcePropagation", fmt.Sprintf("job %q cannot get the resources of its template; "+
			"the main cluster must have the feature gate MutablePodResourcesForSuspendedJobs: %s", refused.What, refused.Message))
	}
	if r.ServiceError != "" {
		warn(helper.ReasonHeadlessServiceCreationFailed, r.ServiceError)
	}
	for _, message := range r.ClaimErrors {
		warn(helper.ReasonPVCCreationFailed, message)
	}
	for _, job := range p.jobsWith(r, LabelsRestored) {
		warn("JobLabelsRestored", fmt.Sprintf("labels that identify job %q as part of the jobset were removed or changed; they have been "+
			"restored", job))
	}
	if r.CreationError != "" {
		warn(helper.ReasonJobCreationFailed, r.CreationError)
	}
	for _, mismatch := range o.Mismatches {
		warn("FeatureGateMismatch", mismatch)
	}
	if r.IgnoredQueue != "" {
		warn(reasons.QueueIgnored, fmt.Sprintf("the label %s names the queue %s, but the cluster does not serve %s: Kueue is not installed, so "+
			"that the jobset runs without quota",
			jobsetv1alpha2.QueueNameKey, r.IgnoredQueue, kueueGroup))
	}
	return events
}

const kueueGroup = "kueue.x-k8s.io"

// noteQueue notes whether the set runs despite its queue.
func noteQueue(s state) changes {
	return changes{plan: Plan{DespiteQueue: runsDespiteQueue(s.JobSet)}}
}

// runsDespiteQueue returns whether the set names a queue and does not wait for it. In a cluster without Kueue, such a
// set runs without quota.
func runsDespiteQueue(js *jobsetv1alpha2.JobSet) bool {
	ended, _ := helper.Finished(js)
	return js.Labels[jobsetv1alpha2.QueueNameKey] != "" && ManagedHere(js) && !suspended(js) && ended == "" && js.DeletionTimestamp == nil &&
		!helper.Held(js)
}

// Recreates reports whether attempts with the trigger have new Jobs.
func Recreates(trigger jobsetv1alpha2.AttemptTrigger) bool {
	switch trigger {
	case jobsetv1alpha2.TriggerRequested, jobsetv1alpha2.TriggerRetry, jobsetv1alpha2.TriggerFailurePolicy:
		return true
	}
	return false
}

// jobsRecreated reports that all Jobs of an attempt exist since the time.
func jobsRecreated(js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt, at *metav1.MicroTime) Event {
	note := fmt.Sprintf("%s of attempt %d %s recreated", startedPart(js, a), a.Number, wereOrWas(js, a))
	if a.RequestTime != nil {
		note = fmt.Sprintf("%s %s after %s", note, readable(at.Sub(a.RequestTime.Time)), origin(a))
	}
	return Event{Type: corev1.EventTypeNormal, Reason: reasonJobsRecreated, Note: note}
}

// startedPart names the Jobs that an attempt started.
func startedPart(js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt) string {
	rj := helper.ReplicatedJob(js, a.ReplicatedJob)
	switch {
	case rj != nil && a.Scope == jobsetv1alpha2.ScopeJob:
		return "job " + helper.JobName(js.Name, rj.Name, ptr.Deref(a.JobIndex, 0))
	case rj != nil && a.Scope == jobsetv1alpha2.ScopeReplicatedJob:
		return fmt.Sprintf("%s of replicatedJob %s", allOf(int64(helper.Replicas(rj))), rj.Name)
	}
	return allOf(helper.TotalReplicas(js))
}

func allOf(jobs int64) string {
	if jobs == 1 {
		return "the only job"
	}
	return fmt.Sprintf("all %d jobs", jobs)
}

func wereOrWas(js *jobsetv1alpha2.JobSet, a *jobsetv1alpha2.Attempt) string {
	jobs := helper.TotalReplicas(js)
	if rj := helper.ReplicatedJob(js, a.ReplicatedJob); rj != nil {
		jobs = int64(helper.Replicas(rj))
	}
	if a.Scope == jobsetv1alpha2.ScopeJob || jobs == 1 {
		return "was"
	}
	return "were"
}

// origin names what began an attempt.
func origin(a *jobsetv1alpha2.Attempt) string {
	what := "restart requested"
	switch a.Trigger {
	case jobsetv1alpha2.TriggerRetry:
		what = "retry requested"
	case jobsetv1alpha2.TriggerFailurePolicy:
		what = "restart by the failure policy"
		if a.Rule != "" {
			what = fmt.Sprintf("restart by rule %s of the failure policy", a.Rule)
		}
	}
	if a.User != "" {
		return fmt.Sprintf("the %s by %s", what, a.User)
	}
	return "the " + what
}

// readable rounds a duration to what a reader needs.
func readable(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	return duration.HumanDuration(d)
}
