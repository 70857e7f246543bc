// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

// Keys of annotations that the server looks at when it validates objects. The full list is in package v1.
const (
	// ExclusiveKey asks for groups that are alone in their domain; its value is the key of a node label.
	ExclusiveKey = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	// SubGroupExclusiveKey asks for subgroups that are alone in their domain.
	SubGroupExclusiveKey = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
)
