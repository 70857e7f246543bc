// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// blocked returns the LeaderWorkerSet whose fault is reported: of those with a fault, the first by name, of the current revision if one is.
// It returns nil if none has a fault.
func blocked(obs Observed, revision string) (found *Child) {
	for i := range obs.Children {
		c := &obs.Children[i]
		if c.Trouble == nil || c.Deleting {
			continue
		}
		current := c.Revision == revision
		switch {
		case found == nil, current && found.Revision != revision, current == (found.Revision == revision) && c.Name < found.Name:
			found = c
		}
	}
	return found
}

// setBlocked puts the condition in place that says what keeps a LeaderWorkerSet from having all its groups. It is False only after it was
// True.
func setBlocked(status *disaggregatedsetv1.DisaggregatedSetStatus, obs Observed, revision string) {
	next := metav1.Condition{Type: disaggregatedsetv1.ConditionRolesBlocked, Status: metav1.ConditionFalse,
		Reason: disaggregatedsetv1.ReasonRolesUnblocked, Message: "no LeaderWorkerSet of the set has a fault",
		ObservedGeneration: obs.Set.Generation, LastTransitionTime: obs.Now}
	if c := blocked(obs, revision); c != nil {
		next.Status, next.Reason = metav1.ConditionTrue, c.Trouble.Reason
		next.Message = fmt.Sprintf("LeaderWorkerSet %s of role %s: %s", c.Name, c.Role, c.Trouble.Message)
	} else if meta.FindStatusCondition(status.Conditions, next.Type) == nil {
		return
	}
	meta.SetStatusCondition(&status.Conditions, next)
}
