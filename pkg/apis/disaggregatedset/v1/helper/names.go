// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// SetName returns the name of the LeaderWorkerSet of a role.
func SetName(set string, slice int32, revision, role string) string {
	return fmt.Sprintf("%s-%d-%s-%s", set, slice, revision, role)
}

// ServiceName returns the name of the Service of a LeaderWorkerSet.
func ServiceName(leaderWorkerSet string) string { return leaderWorkerSet + "-prv" }

// ScalerName returns the name of the scaler of a role.
func ScalerName(set, role string) string { return set + "-" + role }

// Labels returns the labels of a LeaderWorkerSet and of its pods.
func Labels(set string, slice int32, revision, role string) map[string]string {
	return map[string]string{
		disaggregatedsetv1.SetNameLabelKey: set, disaggregatedsetv1.RoleLabelKey: role,
		disaggregatedsetv1.SliceLabelKey: strconv.Itoa(int(slice)), disaggregatedsetv1.RevisionLabelKey: revision,
		"app": fmt.Sprintf("%s-%d-%s", set, slice, role),
	}
}

// Selector returns what selects the leader pods of a role in all slices and revisions, for autoscalers.
func Selector(set, role string) string {
	return fmt.Sprintf("%s=%s,%s=%s,%s=0", disaggregatedsetv1.SetNameLabelKey, set, disaggregatedsetv1.RoleLabelKey, role,
		leaderworkersetv1.WorkerIndexLabelKey)
}

// Slices returns the number of slices of a set.
func Slices(ds *disaggregatedsetv1.DisaggregatedSet) int32 {
	return max(1, ptr.Deref(ds.Spec.Slices, 1))
}

// External returns whether a scaler decides about the replicas of a role.
func External(role *disaggregatedsetv1.DisaggregatedRoleSpec) bool {
	return role.Scaling != nil && role.Scaling.Mode == disaggregatedsetv1.RoleScalingExternal
}

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
