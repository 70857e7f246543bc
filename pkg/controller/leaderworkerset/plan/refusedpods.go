// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// LacksLeaders returns whether the StatefulSet of leaders has fewer pods than it should.
func LacksLeaders(leader *appsv1.StatefulSet, pods []Pod) bool {
	return leader.DeletionTimestamp == nil && len(pods) < int(ptr.Deref(leader.Spec.Replicas, 1))
}

// LacksPods returns whether there are fewer workers than there should be.
func (w *Workers) LacksPods() bool { return !w.Deleting && len(w.Pods) < int(w.Replicas) }

// podsRefused is the trouble of pods that the API refuses to the StatefulSet controller.
func podsRefused(o *Observed) hostplan.Trouble {
	refused := o.RefusedPods
	head := fmt.Sprintf("pods of %d StatefulSets cannot be created: ", refused.Owners)
	if refused.Owners == 1 {
		head = "pods of 1 StatefulSet cannot be created: "
	}
	return refused.Trouble(leaderworkersetv1.ConditionPodCreationFailure, head, o.Now.Time)
}
