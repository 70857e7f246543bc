// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// notes returns what the set asks for and does not get. Only the controller of this project writes attempts: what others do is
// not known.
func notes(js *jobsetv1alpha2.JobSet) []string {
	if js == nil || len(js.Status.Attempts) == 0 || js.Status.Placement != nil ||
		meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.PlacementPending) != nil {
		return nil
	}
	if !hasRun(js) || ptr.Deref(js.Spec.Suspend, false) { // no trace of the gate
		return nil
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if !helper.PlacementIgnored(js.Annotations, rj.Template.Annotations) || helper.ExclusiveTopology(js, rj) == "" {
			continue
		}
		return []string{fmt.Sprintf("exclusive placement (annotation %s) is not in effect for jobs of this set: they were created while the "+
			"feature gate ExclusivePlacement of jobset-controller was off. If it is on now, a restart of the set places them; otherwise "+
			"start both programs with --feature-gates=ExclusivePlacement=true, or use the node-selector strategy (annotation %s)",
			jobsetv1alpha2.ExclusiveKey, jobsetv1alpha2.NodeSelectorStrategyKey)}
	}
	return nil
}

// endpointsByCluster returns why jobset-controller does not write the addresses of the Service although the set asks it to.
func endpointsByCluster(js *jobsetv1alpha2.JobSet) []string {
	if js == nil {
		return nil
	}
	c := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.ServiceEndpointsByCluster)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return []string{"the controllers of the cluster, not jobset-controller, write the addresses of the Service: " + oneLine(c.Message)}
}

// hasRun returns whether Jobs of the set run or have ended.
func hasRun(js *jobsetv1alpha2.JobSet) bool {
	return slices.ContainsFunc(js.Status.ReplicatedJobsStatus, func(s jobsetv1alpha2.ReplicatedJobStatus) bool {
		return s.Active+s.Ready+s.Succeeded+s.Failed > 0
	})
}

// avoidedNodes says which nodes the pods of the attempt that runs keep off.
func avoidedNodes(js *jobsetv1alpha2.JobSet, now time.Time) []string {
	if js == nil {
		return nil
	}
	a := helper.RunningAttempt(&js.Status)
	if a == nil || len(a.AvoidedNodes) == 0 {
		return nil
	}
	if a.ForgetTime != nil {
		return []string{fmt.Sprintf("pods of attempt %d may run again on nodes that failed earlier, because there was no room elsewhere: %s",
			a.Number, cli.Clean(helper.AvoidedInWords(a.AvoidedNodes)))}
	}
	var left []jobsetv1alpha2.AvoidedNode
	for _, node := range a.AvoidedNodes {
		if node.Until.After(now) {
			left = append(left, node)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods of attempt %d keep off %s", a.Number, cli.Clean(helper.AvoidedInWords(left)))}
}

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
	case e.Set != nil && !slices.ContainsFunc(e.Replicas.Replicas, replicaWaitsForQuota):
		return e.queueOfLeaderWorkerSet()
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

// quotaReclaimed says that Kueue has given the quota of pods to others that run again after a restart. Kueue takes the
// quota of pods back that have succeeded, and refuses its own attempt to give it to the set again; until then it also
// fails to suspend the set (docs/kueue.md#restarts-after-a-job-has-succeeded).
func quotaReclaimed(e *Evidence) []string {
	if e.Kueue.Workload == nil || finished(e.JobSet) {
		return nil
	}
	reclaimed, _, _ := unstructured.NestedSlice(e.Kueue.Workload.Object, "status", "reclaimablePods")
	missing := int64(0)
	for _, entry := range reclaimed {
		podSet, _ := entry.(map[string]any)
		name, _ := podSet["name"].(string)
		pods, _ := podSet["count"].(int64)
		missing += max(0, pods-podsSucceeded(e.JobSet, name))
	}
	if missing == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Kueue holds no quota for %s, which had succeeded before a restart, cannot reserve it again, and does not "+
		"suspend the set any more. kubectl -n %s delete workload %s makes Kueue admit the set again: the set is suspended until there "+
		"is quota for all of its pods",
		count(int(missing), "pod"), e.Namespace, e.Kueue.Workload.GetName())}
}

// podsSucceeded returns how many pods of a replicatedJob Kueue takes for succeeded: the pods of its Jobs that have succeeded.
func podsSucceeded(js *jobsetv1alpha2.JobSet, name string) int64 {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if rj.Name != name {
			continue
		}
		spec := &rj.Template.Spec
		pods := ptr.Deref(spec.Parallelism, 1)
		if spec.Completions != nil {
			pods = min(pods, *spec.Completions)
		}
		for j := range js.Status.ReplicatedJobsStatus {
			if status := &js.Status.ReplicatedJobsStatus[j]; status.Name == name {
				return int64(pods) * int64(status.Succeeded)
			}
		}
	}
	return 0
}
