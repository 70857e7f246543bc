// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// RefusedPods are the Jobs whose pods the API refuses to the Job controller.
type RefusedPods struct {
	// Jobs are why, by the UID of the Job. Each of them lacks pods.
	Jobs map[types.UID]PodRefusal
	// Since is since when there are any.
	Since time.Time
}

// PodRefusal is why pods are refused.
type PodRefusal struct {
	// Reason is one of those of the condition PodCreationFailure.
	Reason string
	// Message is what the API said.
	Message string
	// At is when that was last.
	At time.Time
}

const (
	podsCannotBeCreated = " cannot be created: "
	reasonPodsCreated   = "PodsCreated"
	messagePodsCreated  = "no pods are refused"
)

// setPodsRefused reports Jobs whose pods have been refused for some time, and returns when that is due. The message
// stays while the number of Jobs and the reason do: quotas are used up by others, so that each refusal may have other
// numbers.
func (b *statusBuilder) setPodsRefused(owned children) (due time.Duration) {
	jobs, latest := b.refusedPods(owned)
	c := meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.PodCreationFailure)
	known := c != nil && c.Status == metav1.ConditionTrue
	head := fmt.Sprintf("pods of %d of %d Jobs%s", jobs, helper.TotalReplicas(b.o.JobSet), podsCannotBeCreated)
	switch left := hostplan.PodsRefusedAfter - b.o.Now.Sub(b.o.RefusedPods.Since); {
	case jobs == 0:
		b.endPodsRefused(reasonPodsCreated, messagePodsCreated)
	case !known && b.o.Now.Sub(latest.At) > hostplan.RefusedLately:
	case !known && left > 0:
		return left
	case !known || c.Reason != latest.Reason || !strings.HasPrefix(c.Message, head):
		events := b.events
		b.set(jobsetv1alpha2.PodCreationFailure, metav1.ConditionTrue, latest.Reason, head+latest.Message)
		if known {
			b.events = events // another number is no news
		}
	}
	if jobs > 0 {
		due = hostplan.PodsRefusedAgain
	}
	return due
}

// refusedPods returns how many Jobs have pods that were refused, and the latest refusal.
func (b *statusBuilder) refusedPods(owned children) (jobs int, latest PodRefusal) {
	for _, job := range owned.active {
		if refusal, refused := b.o.RefusedPods.Jobs[job.UID]; refused {
			if jobs++; refusal.At.After(latest.At) || latest.At.IsZero() {
				latest = refusal
			}
		}
	}
	return jobs, latest
}

func (b *statusBuilder) endPodsRefused(reason, message string) {
	b.set(jobsetv1alpha2.PodCreationFailure, metav1.ConditionFalse, reason, message)
}
