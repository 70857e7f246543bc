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
	var refused []Refusal
	for _, job := range owned.active {
		if refusal, found := o.RefusedPods[job.UID]; found {
			refused = append(refused, refusal)
		}
	}
	if len(refused) == 0 {
		return hostplan.NoPodsRefused(jobsetv1alpha2.PodCreationFailure)
	}
	head := fmt.Sprintf("pods of %d of %d Jobs cannot be created: ", len(refused), helper.TotalReplicas(o.JobSet))
	return hostplan.Newest(refused).PodsTrouble(jobsetv1alpha2.PodCreationFailure, head, o.PodsRefusedSince, o.Now.Time)
}
