// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Refusal is why children were not created. Its reason is one of those of the condition JobCreationFailure.
type Refusal = hostplan.Refusal

const (
	couldNotBeCreated   = " could not be created: "
	reasonJobsCreated   = "JobsCreated"
	messageJobsCreated  = "the missing Jobs have been created"
	messageJobSetFailed = "jobset failed"
)

// creationFailure returns that children could not be created. A pass tries what was refused last, and quotas are used up by
// others, so that each pass may be refused in other words. The message stays while the reason and the number do, unless it says when the
// controller tries again. The event JobCreationFailed says the same, with each try.
func creationFailure(o Observed, p Plan, r Results, c *metav1.Condition, since time.Time) []hostplan.Trouble {
	next, found := reported(o, r, c, since)
	if !found {
		return nil
	}
	words := next.Message
	if words == "" && c != nil && c.Reason == next.Reason {
		_, words, _ = strings.Cut(c.Message, couldNotBeCreated)
	}
	head := refusedPart(o, p, r) + couldNotBeCreated
	t := hostplan.Trouble{Type: jobsetv1alpha2.JobCreationFailure, Reason: next.Reason, Message: head + words, Quiet: true}
	if next.Reason != jobsetv1alpha2.ReasonUndoneByOthers {
		t.Head = head
	}
	return []hostplan.Trouble{t}
}

// reported returns the refusal that the condition is about. The one that it is about already stays until all children were
// tried and none was refused for its reason; then its message is empty if this pass was not refused for it.
func reported(o Observed, r Results, c *metav1.Condition, since time.Time) (Refusal, bool) {
	if c != nil {
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
	if len(r.Refusals) > 0 && o.Now.Sub(since) >= hostplan.PassesAfter {
		return r.Refusals[0], true
	}
	return Refusal{}, false
}

// refusedPart names what was not created.
func refusedPart(o Observed, p Plan, r Results) string {
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
	return fmt.Sprintf("%d of %d Jobs", missing, helper.TotalReplicas(o.JobSet))
}

// nothingMissing reports whether a plan leaves nothing to create, now or once the Jobs of an earlier attempt are gone.
func (p Plan) nothingMissing(owned children) bool {
	return p.CreateService == nil && len(p.CreateClaims)+len(p.Groups.Create)+len(p.CreateJobs)+len(owned.previous) == 0 && !p.Groups.Waiting
}
