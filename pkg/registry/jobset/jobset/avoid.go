// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// avoidedNodes warns of sets that are to avoid nodes in later attempts, and whose failures lead to none, or to none on other nodes.
func (w *warner) avoidedNodes(js *jobset.JobSet) {
	path := field.NewPath("metadata", "annotations").Key(jobset.AvoidFailedNodesKey)
	switch d, err := jobset.AvoidTime(js.Annotations[jobset.AvoidFailedNodesKey]); {
	case err != nil || d == 0:
	case js.Spec.FailurePolicy == nil:
		w.Add(path, "has an effect only when the set is retried; add a failurePolicy that restarts it")
	case validation.UsesInPlaceRestart(&js.Spec):
		w.Add(path, "has no effect on restarts in place, because pods stay on their nodes")
	}
}
