// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchhelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	dshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// Most rules look at pods and events. Events last an hour, and a user may lack the permission to read either. What the controller has seen
// stands in a condition of the object, which is the last source.

// addReported adds what a condition of the object says, if nothing else says more.
func (d *diagnosis) addReported(findings []Finding) []Finding {
	for _, f := range findings {
		switch f.Cause {
		case Starting, Restarting, Updating, PodsNotReady, LeaderNotReady, CauseUnknown:
		default:
			return findings
		}
	}
	c := d.trouble()
	if c == nil {
		return findings
	}
	cause := d.causeOfTrouble(c)
	if cause == "" {
		return findings
	}
	return sorted(append(findings, Finding{
		Cause: cause, Summary: oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.kubectl("events --for %s --types=Warning", d.set()), d.plugin("tree %s", d.ref())},
	}))
}

// trouble returns the condition that keeps the object from running; nil if none does.
func (d *diagnosis) trouble() *metav1.Condition {
	switch {
	case d.JobSet != nil:
		return firstTrue(d.JobSet.Status.Conditions, helper.Troubles())
	case d.Set != nil:
		return firstTrue(d.Set.Status.Conditions, lwshelper.Troubles())
	case d.RolesSet != nil:
		return firstTrue(d.RolesSet.Status.Conditions, dshelper.Troubles())
	case d.Sequence != nil:
		return batchhelper.Explanation(d.Sequence)
	}
	return nil
}

// firstTrue returns the first condition of some types that is True.
func firstTrue(conditions []metav1.Condition, types []string) *metav1.Condition {
	for _, conditionType := range types {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// causeOfTrouble returns the cause that a condition reports; empty if its own rules decide about it.
func (d *diagnosis) causeOfTrouble(c *metav1.Condition) Cause {
	switch c.Reason {
	case reasons.UndoneByOthers:
		return ChildUndoneByOther
	case reasons.Unschedulable:
		return Unschedulable
	}
	switch {
	case c.Type == jobsetv1alpha2.JobCreationFailure:
		return byReason(c, JobRefusedByQuota, JobCreationFailed)
	case c.Type == leaderworkersetv1.ConditionChildCreationFailure:
		return d.causeOfChild(c)
	case c.Type == jobsetv1alpha2.PodCreationFailure, d.RolesSet != nil, strings.HasPrefix(c.Message, "pods of job "):
		return byReason(c, PodsRefusedByQuota, PodCreationFailed)
	}
	return ""
}

// causeOfChild returns why a child of a LeaderWorkerSet or of a DisaggregatedSet cannot be created.
func (d *diagnosis) causeOfChild(c *metav1.Condition) Cause {
	taken, refused := StatefulSetNameTaken, StatefulSetRefused
	if d.RolesSet != nil {
		taken, refused = LeaderWorkerSetNameTaken, LeaderWorkerSetRefused
	}
	if c.Reason == reasons.NameConflict {
		return taken
	}
	return refused
}

// byReason returns one cause for a quota, and another one for all else.
func byReason(c *metav1.Condition, quota, other Cause) Cause {
	if c.Reason == reasons.QuotaExceeded {
		return quota
	}
	return other
}
