// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
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

// rolesBlocked is the trouble of a LeaderWorkerSet that a fault keeps from having all its groups.
func rolesBlocked(obs Observed, revision string) hostplan.Trouble {
	c := blocked(obs, revision)
	if c == nil {
		return hostplan.Trouble{Type: disaggregatedsetv1.ConditionRolesBlocked, Over: true,
			Reason: disaggregatedsetv1.ReasonRolesUnblocked, Message: "no LeaderWorkerSet of the set has a fault"}
	}
	return hostplan.Trouble{Type: disaggregatedsetv1.ConditionRolesBlocked, Reason: c.Trouble.Reason,
		Message: fmt.Sprintf("LeaderWorkerSet %s of role %s: %s", c.Name, c.Role, c.Trouble.Message)}
}
