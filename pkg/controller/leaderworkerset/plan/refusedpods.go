// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// podsRefused is the trouble of pods that the API refuses to the StatefulSet controller.
func podsRefused(o *Observed) hostplan.Trouble {
	if len(o.RefusedPods) == 0 {
		return hostplan.NoPodsRefused(leaderworkersetv1.ConditionPodCreationFailure)
	}
	head := fmt.Sprintf("pods of %d StatefulSets cannot be created: ", len(o.RefusedPods))
	if len(o.RefusedPods) == 1 {
		head = "pods of 1 StatefulSet cannot be created: "
	}
	return hostplan.Newest(o.RefusedPods).PodsTrouble(leaderworkersetv1.ConditionPodCreationFailure, head, o.PodsRefusedSince, o.Now.Time)
}
