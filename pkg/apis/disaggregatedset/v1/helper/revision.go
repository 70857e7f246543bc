// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// revisionLength is the length of a revision.
const revisionLength = 8

// Revision returns the revision of a set: a hash of the names and templates of its roles, in their order. What else a
// role has does not count, nor do the fields that the released upstream does not have.
func Revision(ds *disaggregatedsetv1.DisaggregatedSet) (string, error) {
	type payload struct {
		Name     string                                 `json:"name"`
		Template leaderworkersetv1.LeaderWorkerTemplate `json:"template"`
	}
	roles := make([]payload, 0, len(ds.Spec.Roles))
	for i := range ds.Spec.Roles {
		role := payload{Name: ds.Spec.Roles[i].Name, Template: ds.Spec.Roles[i].Spec.LeaderWorkerTemplate}
		role.Template.MaxGroupRestarts = nil
		roles = append(roles, role)
	}
	data, err := json.Marshal(roles)
	if err != nil {
		return "", fmt.Errorf("computing the revision of disaggregatedset %s/%s: %w", ds.Namespace, ds.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:revisionLength], nil
}
