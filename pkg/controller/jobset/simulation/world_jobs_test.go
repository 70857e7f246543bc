// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the Job controller and the kubelets of a world.

// liveJob takes a Job one step further. It reports whether anything changed.
func (w *world) liveJob(job *batchv1.Job) bool {
	pods := w.podsOf(job)
	switch {
	case w.setOf(job) == nil && job.DeletionTimestamp == nil:
		w.deleteJob(job)
	case job.DeletionTimestamp != nil && len(pods) == 0:
		w.Note("job %s is gone", job.Name)
		w.jobs.Remove(job.Name)
	case job.DeletionTimestamp != nil:
		return w.stopPods(pods)
	case hasCondition(job, batchv1.JobComplete):
		return false
	case hasCondition(job, batchv1.JobFailureTarget):
		return w.endFailure(job, pods)
	case jobIsSuspended(job):
		return w.suspendPods(job, pods)
	default:
		return w.runPods(job, pods)
	}
	return true
}

// deleteJob deletes a Job in the foreground.
func (w *world) deleteJob(job *batchv1.Job) {
	if job.DeletionTimestamp == nil {
		w.changeJob(job, func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(w.Stored()) })
	}
}

// stopPods has pods end. Those that run take some time.
func (w *world) stopPods(pods []*corev1.Pod) (busy bool) {
	for _, pod := range pods {
		switch {
		case pod.Spec.NodeName == "" || hasEnded(pod):
			w.pods.Remove(pod.Name)
			busy = true
		case pod.DeletionTimestamp == nil:
			w.changePod(pod, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(w.Stored()) })
			busy = true
		}
	}
	return busy
}

func (w *world) suspendPods(job *batchv1.Job, pods []*corev1.Pod) bool {
	busy := w.stopPods(pods)
	stop := w.stopping(job)
	if hasCondition(job, batchv1.JobSuspended) && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == stop {
		return busy
	}
	w.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, ptr.To[int32](0), &stop
		w.setCondition(j, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended")
	})
	return true
}

// stopping returns how many pods of a Job are being deleted.
func (w *world) stopping(job *batchv1.Job) (n int32) {
	for _, pod := range w.podsOf(job) {
		n += one(pod.DeletionTimestamp != nil)
	}
	return n
}

// endFailure marks a Job as failed after its pods have been stopped.
func (w *world) endFailure(job *batchv1.Job, pods []*corev1.Pod) bool {
	if hasCondition(job, batchv1.JobFailed) {
		return w.stopPods(pods)
	}
	if w.stopPods(pods) {
		return true
	}
	w.Note("job %s has failed", job.Name)
	w.changeJob(job, func(j *batchv1.Job) {
		j.Status.Active, j.Status.Ready, j.Status.Terminating = 0, ptr.To[int32](0), ptr.To(w.stopping(j))
		w.setCondition(j, batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
	})
	return true
}

// runPods creates pods that are missing, and counts those that are there.
func (w *world) runPods(job *batchv1.Job, pods []*corev1.Pod) bool {
	var alive, ready, succeeded int32
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case pod.DeletionTimestamp != nil && w.inPlace:
			alive++ // the policy is to replace pods that have ended
		case pod.DeletionTimestamp == nil:
			alive++
			ready += one(pod.Status.Phase == corev1.PodRunning)
		}
	}
	wanted := *job.Spec.Parallelism - succeeded
	for n := alive; n < wanted; n++ {
		w.startPod(job)
	}
	return w.storeCounts(job, wanted, ready, succeeded)
}

// storeCounts stores how many pods of a Job run, are ready and have succeeded, if that is news. It reports whether it is.
func (w *world) storeCounts(job *batchv1.Job, running, ready, succeeded int32) bool {
	stop := w.stopping(job)
	same := ptr.Deref(job.Status.Terminating, 0) == stop && job.Status.Active == running && ptr.Deref(job.Status.Ready, 0) == ready && job.Status.Succeeded == succeeded
	if same && job.Status.StartTime != nil && running > 0 {
		return false
	}
	resumed := hasCondition(job, batchv1.JobSuspended)
	w.changeJob(job, func(j *batchv1.Job) {
		if j.Status.StartTime == nil || resumed {
			j.Status.StartTime = ptr.To(w.Stored())
		}
		if resumed {
			w.setCondition(j, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed")
		}
		j.Status.Active, j.Status.Ready, j.Status.Succeeded, j.Status.Terminating = running, ptr.To(ready), succeeded, &stop
		if running == 0 {
			w.Note("job %s is complete", j.Name)
			w.setCondition(j, batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached)
		}
	})
	return true
}

func (w *world) startPod(job *batchv1.Job) {
	uid := w.NewUID("pod")
	template := &job.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + strings.TrimPrefix(string(uid), "pod"), Namespace: namespace, UID: uid, Labels: template.Labels, CreationTimestamp: w.Stored(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}},
		},
		Spec: template.Spec,
	}
	pod.Spec.Priority = ptr.To(priorities[pod.Spec.PriorityClassName])
	w.pods.Put(pod)
	w.rules.podsSince[uid] = w.pods.Versions.Last
}

func (w *world) setCondition(job *batchv1.Job, conditionType batchv1.JobConditionType, status corev1.ConditionStatus, reason string) {
	kept := slices.DeleteFunc(slices.Clone(job.Status.Conditions), func(c batchv1.JobCondition) bool { return c.Type == conditionType })
	job.Status.Conditions = append(kept, batchv1.JobCondition{Type: conditionType, Status: status, Reason: reason, LastTransitionTime: w.Stored()})
}

// livePod takes a pod on a node one step further. It reports whether anything changed.
func (w *world) livePod(pod *corev1.Pod) bool {
	node, found := w.nodes.Get(pod.Spec.NodeName)
	switch {
	case pod.DeletionTimestamp != nil:
		w.pods.Remove(pod.Name)
	case !found || !nodeReady(node) || pod.Status.Phase != corev1.PodPending:
		return false
	default:
		w.changePod(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	}
	return true
}

// failJob has a Job fail, because of the node if one is named.
func (w *world) failJob(job *batchv1.Job, node string) {
	if job.DeletionTimestamp != nil || ended(job) || hasCondition(job, batchv1.JobFailureTarget) {
		return
	}
	w.Note("job %s is about to fail, node %q", job.Name, node)
	w.Seen["Jobs that failed"]++
	w.lostOn[job.UID] = node
	w.changeJob(job, func(j *batchv1.Job) {
		w.setCondition(j, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded)
	})
}

// losePod stops a pod that was to run on. The Job replaces it, or fails.
func (w *world) losePod(pod *corev1.Pod, node string) {
	w.stopPods([]*corev1.Pod{pod})
	if job := w.jobOf(pod); job != nil && w.Dice.Percent(50) {
		w.failJob(job, node)
	}
}

// succeedSome lets Jobs end that have run long enough. It reports whether there are any.
func (w *world) succeedSome(likely int) (busy bool) {
	if likely == 0 {
		return false
	}
	for _, job := range slices.Clone(w.jobs.Objects) {
		if !w.maySucceed(job) {
			continue
		}
		for _, pod := range w.podsOf(job) {
			runs := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
			busy = busy || runs
			if runs && (w.inPlace || w.Dice.Percent(likely)) {
				w.changePod(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			}
		}
	}
	return busy
}

// maySucceed reports whether pods of a Job may end. Those of exclusive Jobs train together.
func (w *world) maySucceed(job *batchv1.Job) bool {
	js := w.setOf(job)
	if js != nil && w.inPlace {
		return w.inPlaceTogether(js)
	}
	if js == nil || job.DeletionTimestamp != nil || ended(job) || jobIsSuspended(job) || hasCondition(job, batchv1.JobFailureTarget) {
		return false
	}
	return topologyOf(js, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]) == "" || w.trained(js)
}

// trained reports whether all exclusive Jobs of a set that can run have all pods ready: a training ends together.
func (w *world) trained(js *jobsetv1alpha2.JobSet) bool {
	o := plan.Observed{JobSet: js, Jobs: w.ownJobs(js), Gates: w.gates}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		complete := !slices.ContainsFunc(rj.DependsOn, func(d jobsetv1alpha2.DependsOn) bool {
			return d.Status == jobsetv1alpha2.DependencyComplete && !dependencyMet(o, d)
		})
		if topologyOf(js, rj.Name) != "" && complete && !hasStarted(o, rj) {
			return false
		}
	}
	return true
}

func (w *world) ownJobs(js *jobsetv1alpha2.JobSet) []*batchv1.Job {
	return ownedBy(js.UID, w.jobs.Objects)
}

// topologyOf returns the label of nodes that Jobs of a replicatedJob have one value of alone; empty if they do not ask for that.
func topologyOf(js *jobsetv1alpha2.JobSet, name string) string {
	rj := replicatedJob(js, name)
	if rj == nil {
		return ""
	}
	if key, found := rj.Template.Annotations[jobsetv1alpha2.ExclusiveKey]; found {
		return key
	}
	return js.Annotations[jobsetv1alpha2.ExclusiveKey]
}

func (w *world) nodesOfRack(rack int) (n int) {
	for _, node := range w.nodes.Objects {
		n += int(one(node.Labels[rackKey] == fmt.Sprintf("r%d", rack)))
	}
	return n
}
