// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// podsRefused returns what is said about Jobs whose pods the API refuses.
func podsRefused(o Observed, owned children) hostplan.Trouble {
	refused := refusedPods(o, owned)
	head := ""
	if refused.Owners > 0 {
		head = fmt.Sprintf("pods of %d of %d Jobs cannot be created: ", refused.Owners, helper.TotalReplicas(o.JobSet))
	}
	return refused.Trouble(jobsetv1alpha2.PodCreationFailure, head, o.Now.Time)
}

// refusedPods returns how many Jobs have pods that were refused, and the latest refusal.
func refusedPods(o Observed, owned children) hostplan.RefusedPods {
	r := hostplan.RefusedPods{Since: o.PodsRefusedSince}
	for _, job := range owned.active {
		if refusal, refused := o.RefusedPods[job.UID]; refused {
			if r.Owners++; refusal.At.After(r.At) || r.At.IsZero() {
				r.Reason, r.Message, r.At = refusal.Reason, refusal.Message, refusal.At
			}
		}
	}
	return r
}
