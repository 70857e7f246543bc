// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"k8s.io/klog/v2"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// logTransitions logs the changes of the state of a set, one line each, as the watch shows them.
func logTransitions(logger klog.Logger, was, is *leaderworkersetv1.LeaderWorkerSet) {
	before, after := phaseOf(was), phaseOf(is)
	if before == after {
		return
	}
	logger.Info("LeaderWorkerSet is "+after, Name, klog.KObj(is), "before", before, "replicas", is.Status.Replicas,
		"ready", is.Status.ReadyReplicas, "updated", is.Status.UpdatedReplicas)
}
