// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// queueIgnored says that nobody reads the queue that the label of a set names: a suspended set waits for ever, which is a cause, and any other one runs
// without quota.
func queueIgnored(e *Evidence) []string {
	js := e.JobSet
	if js == nil || js.Labels[jobsetv1alpha2.QueueNameKey] == "" || e.Kueue.Served || helper.Suspended(js) || finished(js) {
		return nil
	}
	return []string{fmt.Sprintf("the label %s names the queue %s, but the cluster does not serve %s: Kueue is not installed, so that the set runs without quota",
		jobsetv1alpha2.QueueNameKey, js.Labels[jobsetv1alpha2.QueueNameKey], kueueGroup)}
}
