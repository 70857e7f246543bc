// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"k8s.io/apimachinery/pkg/types"
)

// Reason is why a server refuses to serve, in CamelCase.
type Reason string

// Reasons.
const (
	// ReasonEmptyStore: the record exists, but etcd has no key.
	ReasonEmptyStore Reason = "EmptyStore"
	// ReasonForeignStore: the key has another UUID than the record.
	ReasonForeignStore Reason = "ForeignStore"
	// ReasonOtherCluster: the key belongs to another cluster: two clusters use one store, or the store or the cluster is a clone.
	ReasonOtherCluster Reason = "OtherCluster"
	// ReasonRolledBack: the key is older than the floor of the record, or the store older than a server has seen it.
	ReasonRolledBack Reason = "RolledBack"
	// ReasonUnknownOwners: objects have owners that the store does not know.
	ReasonUnknownOwners Reason = "UnknownOwners"
	// ReasonCustomResources: a CustomResourceDefinition of one of our kinds has objects that the store does not have, or may have some.
	ReasonCustomResources Reason = "CustomResources"
	// ReasonNotRouted: kube-apiserver answers for the API group itself, from a CustomResourceDefinition.
	ReasonNotRouted Reason = "NotRouted"
	// ReasonNewerFormat: a newer version of this server has written the data.
	ReasonNewerFormat Reason = "NewerFormat"
	// ReasonNotChecked: the store or the main API has not answered yet.
	ReasonNotChecked Reason = "NotChecked"
)

// Step is what a server has to do with what it has found.
type Step string

// Steps.
const (
	// StepServe: both halves agree.
	StepServe Step = "Serve"
	// StepFirst: there is neither half. The owners are checked, and then the key is created, and then the record.
	StepFirst Step = "First"
	// StepRecord: there is a key of this cluster, but no record. The owners are checked, and then the record is created.
	StepRecord Step = "Record"
	// StepRefuse: nothing may be served.
	StepRefuse Step = "Refuse"
)

// Decide returns what to do with the two halves, each of which is nil if it does not exist. A record without a store
// counts as none. The reason is empty unless the step is StepRefuse.
func Decide(key *Found, record *Record, cluster types.UID) (Step, Reason) {
	switch {
	case key != nil && key.Format > Format:
		return StepRefuse, ReasonNewerFormat
	case key != nil && key.ClusterUID != cluster:
		return StepRefuse, ReasonOtherCluster
	case key == nil && !record.Adopted():
		return StepFirst, ""
	case key == nil:
		return StepRefuse, ReasonEmptyStore
	case !record.Adopted():
		return StepRecord, ""
	case key.UUID != record.UUID:
		return StepRefuse, ReasonForeignStore
	case key.ModRevision < record.Floor || key.Behind > 0:
		return StepRefuse, ReasonRolledBack
	}
	return StepServe, ""
}
