// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	podsCannotBeCreated = " cannot be created: "
	reasonPodsCreated   = reasons.PodsCreated
	messagePodsCreated  = "no pods are refused"
)

// podsRefused reports Jobs whose pods have been refused for some time. The message stays while the number of Jobs and the
// reason do: quotas are used up by others, so that each refusal may have other numbers.
func podsRefused(s state) changes {
	jobs, latest := refusedPods(s.Observed, s.owned)
	c := current(&s.JobSet.Status, jobsetv1alpha2.PodCreationFailure)
	head := fmt.Sprintf("pods of %d of %d Jobs%s", jobs, helper.TotalReplicas(s.JobSet), podsCannotBeCreated)
	if jobs == 0 {
		return wants(end(jobsetv1alpha2.PodCreationFailure, reasonPodsCreated, messagePodsCreated))
	}
	reports, due := hostplan.ReportsRefused(c != nil, s.PodsRefusedSince, latest.At, s.Now.Time)
	out := changes{plan: Plan{RequeueAfter: cmp.Or(due, hostplan.PodsRefusedAgain)}}
	if reports && (c == nil || c.Reason != latest.Reason || !strings.HasPrefix(c.Message, head)) {
		refused := begin(jobsetv1alpha2.PodCreationFailure, latest.Reason, head+latest.Message)
		refused.quiet = c != nil // another number is no news
		out.conditions = []condition{refused}
	}
	return out
}

// refusedPods returns how many Jobs have pods that were refused, and the latest refusal.
func refusedPods(o Observed, owned children) (jobs int, latest Refusal) {
	for _, job := range owned.active {
		if refusal, refused := o.RefusedPods[job.UID]; refused {
			if jobs++; refusal.At.After(latest.At) || latest.At.IsZero() {
				latest = refusal
			}
		}
	}
	return jobs, latest
}
