// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Refusal is why children were not created.
type Refusal struct {
	// Reason is one of those of the condition JobCreationFailure.
	Reason string
	// Message is the answer of the API, or why there was none.
	Message string
	// MayPass means that the API has not decided against the children: the next try may succeed without any change.
	MayPass bool
}

const (
	couldNotBeCreated   = " could not be created: "
	reasonJobsCreated   = "JobsCreated"
	messageJobsCreated  = "the missing Jobs have been created"
	messageJobSetFailed = "jobset failed"
)

// setCreationFailure reports that children could not be created. A pass tries what was refused last, and quotas are used up by
// others, so that each pass may be refused in other words. The message stays while the reason and the number do.
func (b *statusBuilder) setCreationFailure(p Plan, r Results, since time.Time) {
	next, found := b.reported(r, since)
	if !found {
		return
	}
	head := b.refusedPart(p, r) + couldNotBeCreated
	message := head + next.Message
	if c := b.creationFailure(); c != nil && c.Reason == next.Reason {
		_, words, _ := strings.Cut(c.Message, couldNotBeCreated)
		if strings.HasPrefix(c.Message, head) || next.Message == "" {
			message = head + words
		}
	}
	events := b.events
	b.set(jobsetv1alpha2.JobCreationFailure, metav1.ConditionTrue, next.Reason, message)
	b.events = events // the event JobCreationFailed says the same, with each try
}

// reported returns the refusal that the condition is about. The one that it is about already stays until all children were
// tried and none was refused for its reason; then its message is empty if this pass was not refused for it.
func (b *statusBuilder) reported(r Results, since time.Time) (Refusal, bool) {
	if c := b.creationFailure(); c != nil {
		if i := slices.IndexFunc(r.Refusals, func(other Refusal) bool { return other.Reason == c.Reason }); i >= 0 {
			return r.Refusals[i], true
		}
		decided := slices.ContainsFunc(r.Refusals, func(other Refusal) bool { return !other.MayPass })
		if !decided || slices.Contains(r.Creations, NotTried) {
			return Refusal{Reason: c.Reason}, len(r.Refusals) > 0
		}
	}
	for _, refusal := range r.Refusals {
		if !refusal.MayPass {
			return refusal, true
		}
	}
	if len(r.Refusals) > 0 && b.o.Now.Sub(since) >= hostplan.PassesAfter {
		return r.Refusals[0], true
	}
	return Refusal{}, false
}

// creationFailure returns the condition while it is True.
func (b *statusBuilder) creationFailure() *metav1.Condition {
	c := meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.JobCreationFailure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// refusedPart names what was not created.
func (b *statusBuilder) refusedPart(p Plan, r Results) string {
	if r.Refused != "" {
		return r.Refused
	}
	missing := len(p.CreateJobs)
	for _, result := range r.Creations {
		switch result {
		case Created, Exists, LabelsRestored, NameTaken, NameFreed:
			missing--
		}
	}
	return fmt.Sprintf("%d of %d Jobs", missing, helper.TotalReplicas(b.o.JobSet))
}

// endCreationFailure reports that nothing waits for its creation any more.
func (b *statusBuilder) endCreationFailure(reason, message string) {
	b.set(jobsetv1alpha2.JobCreationFailure, metav1.ConditionFalse, reason, message)
}

// endTroubles reports that the set has finished, whatever it waited for.
func (b *statusBuilder) endTroubles(reason, message string) {
	b.endCreationFailure(reason, message)
	b.endPodsRefused(reason, message)
	b.endUnschedulable(reason, message)
	b.endHold(reason, message)
	b.endPlacement(reason, message)
	b.endEndpoints(reason, message)
}

// nothingMissing reports whether a plan leaves nothing to create, now or once the Jobs of an earlier attempt are gone.
func (p Plan) nothingMissing(owned children) bool {
	return p.CreateService == nil && len(p.CreateClaims)+len(p.Groups.Create)+len(p.CreateJobs)+len(owned.previous) == 0 && !p.Groups.Waiting
}
