// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Children are what a set gets that has nothing yet, once nothing holds it back any more.
type Children struct {
	// Service is nil for a set that wants none.
	Service *corev1.Service
	// Claims are in the order of the spec.
	Claims []*corev1.PersistentVolumeClaim
	// Jobs are the first ones of the replicatedJobs, in the order of the spec; nil for one that has no Jobs. All other Jobs
	// differ from these in names and indices only.
	Jobs []*batchv1.Job
}

// ChildrenOf returns the children of a new set, for those who want to know them beforehand. It takes the same ways as
// Decide.
func ChildrenOf(js *jobsetv1alpha2.JobSet, gates gates.Gates) Children {
	o := indexed(Observed{JobSet: js, Gates: gates})
	if !ManagedHere(js) {
		return Children{Jobs: make([]*batchv1.Job, len(js.Spec.ReplicatedJobs))}
	}
	out := Children{Service: missingService(o), Claims: missingClaims(o)}
	places := positions(js)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		var first *batchv1.Job
		if helper.Replicas(rj) > 0 {
			first = newJobBuilder(o, rj, places[i]).build(0)
		}
		out.Jobs = append(out.Jobs, first)
	}
	return out
}
