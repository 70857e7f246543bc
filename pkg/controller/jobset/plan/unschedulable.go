// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Unschedulable are the pods of a set for which the scheduler finds no node.
type Unschedulable = hostplan.Unschedulable

// unschedulable returns what is said about pods that wait for a node.
func unschedulable(o Observed) hostplan.Trouble {
	return o.Unschedulable.Trouble(jobsetv1alpha2.PodsUnschedulable, "", hostplan.JobSetUnschedulableAfter)
}
