// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// queueIgnored says that the object names a queue and runs without quota, because the cluster has no Kueue. One that
// waits for the queue has a cause.
func queueIgnored(e *Evidence) []string {
	queue := e.queueOfRunning()
	if queue == "" || !e.Kueue.Absent {
		return nil
	}
	return []string{fmt.Sprintf("the label %s names the queue %s, but the cluster does not serve %s: Kueue is not installed, so that the "+
		"%s runs without quota",
		jobsetv1alpha2.QueueNameKey, queue, kueueGroup, e.kind().noun)}
}

// queueOfRunning returns the queue of an object that does not wait for it; "" for one that waits, has ended, or has no queue.
func (e *Evidence) queueOfRunning() string {
	switch {
	case e.JobSet != nil && !helper.Suspended(e.JobSet) && !finished(e.JobSet):
		return e.JobSet.Labels[jobsetv1alpha2.QueueNameKey]
	case e.Sequence != nil && slices.ContainsFunc(e.Jobs, func(job *batchv1.Job) bool {
		return !ptr.Deref(job.Spec.Suspend, false) &&
			!jobEnded(job)
	}):
		_, queue := e.queueOwner()
		return queue
	case e.Set != nil && !slices.ContainsFunc(e.Groups.Groups, groupHeldByKueue):
		return e.queueOfGroups()
	}
	return ""
}

// askForKueue finds out whether the cluster serves the API of Kueue, and reads no more than that.
func (l *loader) askForKueue(ctx context.Context) {
	for _, v := range kueueVersions {
		if _, err := l.Dynamic.Resource(kueue(v, "workloads")).Namespace(l.Namespace).List(ctx,
			metav1.ListOptions{Limit: 1}); !apierrors.IsNotFound(err) {
			l.e.Kueue.Served = true // a refusal shows that as well
			return
		}
	}
	l.e.Kueue.Absent = true
}
