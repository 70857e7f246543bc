// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// What keeps pods that have a node from being ready.

// terminatingPods looks for pods that were told to end, have had their time, and are still there. What is to take their
// place waits for them.
func terminatingPods(d *diagnosis) []Finding {
	overdue := slices.DeleteFunc(slices.Clone(d.Pods), func(pod *corev1.Pod) bool {
		// The time of deletion includes the grace period.
		return pod.DeletionTimestamp == nil || d.Now.Sub(pod.DeletionTimestamp.Time) < deletionGrace
	})
	if len(overdue) == 0 {
		return nil
	}
	slices.SortStableFunc(overdue, func(a, b *corev1.Pod) int { return a.DeletionTimestamp.Compare(b.DeletionTimestamp.Time) })
	first := overdue[0]
	what := "the restart waits for"
	if len(d.previous) == 0 {
		what = "the next pods wait for"
	}
	f := Finding{
		Cause: TerminatingPodsBlock,
		Summary: fmt.Sprintf("%s %s that should have ended %s: %s", what, count(len(overdue), "pod"),
			ago(d.Now, first.DeletionTimestamp.Time), some(podNames(overdue), maxFacts)),
		Commands: []string{d.kubectl("describe pod %s", first.Name),
			d.kubectl("delete pod %s --grace-period=0 --force  # if its node will not come back", first.Name)},
	}
	for _, pod := range overdue[:min(maxFacts, len(overdue))] {
		f.Evidence = append(f.Evidence, Fact{Object: object("pod", pod.Name), Text: "terminating on node " + pod.Spec.NodeName +
			", past its grace period", Time: at(pod.DeletionTimestamp.Time)})
	}
	if d.blockingRecreate() && len(d.previous) > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf(
			"restartStrategy BlockingRecreate: no job is created before all %d earlier ones are gone", len(d.previous))})
	}
	return []Finding{f}
}

// blockingRecreate returns whether a set waits until all Jobs of the earlier attempt are gone.
func (d *diagnosis) blockingRecreate() bool {
	return d.JobSet != nil && d.JobSet.Spec.FailurePolicy != nil &&
		d.JobSet.Spec.FailurePolicy.RestartStrategy == jobsetv1alpha2.RestartStrategyBlockingRecreate
}

// waitingReasons are what kubelets say of containers that cannot start.
var waitingReasons = map[string]Cause{
	cli.ReasonImagePullBackOff: ImagePull, cli.ReasonErrImagePull: ImagePull, cli.ReasonInvalidImageName: ImagePull,
	cli.ReasonErrImageNeverPull: ImagePull,
	"ImageInspectError":         ImagePull, "RegistryUnavailable": ImagePull, "SignatureValidationFailed": ImagePull,
	"CrashLoopBackOff":           CrashLoop,
	"CreateContainerConfigError": ContainerConfig, "CreateContainerError": ContainerConfig, helper.ReasonRunContainerError: ContainerConfig,
	"PreCreateHookError": ContainerConfig, "PreStartHookError": ContainerConfig, "PostStartHookError": ContainerConfig,
}

// containersWaiting looks for containers that cannot start, or were ended for their memory.
func containersWaiting(d *diagnosis) []Finding {
	type group struct {
		pods   []*corev1.Pod
		status corev1.ContainerStatus
	}
	groups := map[Cause]*group{}
	for _, pod := range d.live {
		cause, status := containerTrouble(pod)
		if cause == "" && d.stuckOnVolumes(pod) != nil {
			cause = VolumeMount
		}
		if cause == "" {
			continue
		}
		if groups[cause] == nil {
			groups[cause] = &group{status: status}
		}
		groups[cause].pods = append(groups[cause].pods, pod)
	}
	var findings []Finding
	for _, cause := range Causes {
		if g := groups[cause]; g != nil {
			findings = append(findings, d.containerFinding(cause, g.pods, g.status))
		}
	}
	return findings
}

// containerTrouble returns what is wrong with the first container in trouble; "" when nothing is.
func containerTrouble(pod *corev1.Pod) (Cause, corev1.ContainerStatus) {
	for _, status := range containers(pod) {
		ended := status.State.Terminated
		if ended == nil {
			ended = status.LastTerminationState.Terminated
		}
		if !status.Ready && ended != nil && ended.Reason == helper.ReasonOOMKilled {
			return OutOfMemory, status
		}
		if waiting := status.State.Waiting; waiting != nil && waitingReasons[waiting.Reason] != "" {
			return waitingReasons[waiting.Reason], status
		}
	}
	return "", corev1.ContainerStatus{}
}

// stuckOnVolumes returns the event that says why a pod on a node waits for its volumes.
func (d *diagnosis) stuckOnVolumes(pod *corev1.Pod) *corev1.Event {
	if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending {
		return nil
	}
	if events := d.about(pod.UID, "FailedMount", "FailedAttachVolume", "FailedMapVolume"); len(events) > 0 {
		return &events[0]
	}
	return nil
}

func (d *diagnosis) containerFinding(cause Cause, pods []*corev1.Pod, status corev1.ContainerStatus) Finding {
	pod := pods[0]
	where := fmt.Sprintf("container %s of pod %s", status.Name, pod.Name)
	if len(pods) > 1 {
		where = fmt.Sprintf("container %s of %s, for example pod %s", status.Name, count(len(pods), "pod"), pod.Name)
	}
	f := Finding{Cause: cause, Evidence: containerFacts(pod, status), Commands: []string{d.kubectl("describe pod %s", pod.Name)}}
	logs := d.kubectl("logs %s -c %s --previous", pod.Name, status.Name)
	var reason, message string
	if waiting := status.State.Waiting; waiting != nil {
		reason, message = waiting.Reason, oneLine(waiting.Message)
	}
	switch cause {
	case ImagePull:
		f.Summary = fmt.Sprintf("the image %s cannot be pulled (%s): %s", status.Image, reason, where)
		f.Commands = append(f.Commands, d.anotherImage())
	case ContainerConfig:
		f.Summary = fmt.Sprintf("%s cannot be started (%s): %s", where, reason, message)
	case VolumeMount:
		e := d.stuckOnVolumes(pod)
		f.Summary = fmt.Sprintf("%s: %s", podsDo(len(pods), "waits for its volumes", "wait for their volumes"), oneLine(e.Message))
		f.Evidence = []Fact{eventFact(e)}
	case OutOfMemory:
		f.Summary = fmt.Sprintf("%s was killed because it used too much memory (%s), %s", where, memoryLimit(pod, status.Name),
			restartsSoFar(status.RestartCount))
		f.Commands = append([]string{logs}, d.usage()...)
	case CrashLoop:
		f.Summary = fmt.Sprintf("%s crashes repeatedly, %s%s", where, restartsSoFar(status.RestartCount), lastExit(status))
		f.Commands = []string{logs, d.kubectl("describe pod %s", pod.Name)}
	}
	return f
}

func restartsSoFar(restarts int32) string {
	return count(int(restarts), "container restart") + " so far"
}

func lastExit(status corev1.ContainerStatus) string {
	if t := status.LastTerminationState.Terminated; t != nil {
		return fmt.Sprintf(", last with exit code %d%s", t.ExitCode, quoted(t.Message))
	}
	return ""
}

func containerFacts(pod *corev1.Pod, status corev1.ContainerStatus) []Fact {
	var facts []Fact
	name := object("pod", pod.Name)
	if waiting := status.State.Waiting; waiting != nil {
		facts = append(facts, Fact{Object: name, Text: fmt.Sprintf("container %s waits: %s, %s", status.Name, waiting.Reason,
			oneLine(waiting.Message)), Count: status.RestartCount})
	}
	for _, t := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if t != nil {
			facts = append(facts, Fact{Object: name, Text: fmt.Sprintf("container %s ended on node %s: %s, exit code %d", status.Name,
				pod.Spec.NodeName, t.Reason, t.ExitCode), Time: at(t.FinishedAt.Time)})
		}
	}
	return facts
}

func memoryLimit(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container && !c.Resources.Limits.Memory().IsZero() {
			return "its limit is " + c.Resources.Limits.Memory().String()
		}
	}
	return "it has no limit: its node ran out of memory"
}

// podsFailed looks for Jobs that try again after some of their pods failed.
func podsFailed(d *diagnosis) []Finding {
	for _, job := range d.current {
		if jobEnded(job) || job.Status.Ready != nil && *job.Status.Ready >= podsWanted(job) {
			continue
		}
		first := firstFailure(slices.DeleteFunc(slices.Clone(d.podsOf[job.UID]),
			func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodFailed }))
		if first == nil {
			continue
		}
		tries := fmt.Sprintf("its job %s tries again, after %s", job.Name, count(int(job.Status.Failed), "failed pod"))
		if limit := job.Spec.BackoffLimit; limit != nil && helper.TrueJobCondition(job, batchv1.JobFailureTarget) == nil {
			tries += fmt.Sprintf(" (backoffLimit %d)", *limit)
		}
		f := d.failureFinding(helper.FirstCause(job.Name, batchv1.JobCondition{}, first), tries)
		return []Finding{f}
	}
	return nil
}

// firstCauseOf returns the first failure in the pods of a Job that failed, or else what the Job says.
func firstCauseOf(job *batchv1.Job, failure *batchv1.JobCondition, pods []*corev1.Pod) *jobsetv1alpha2.FailureCause {
	return helper.FirstCause(job.Name, *failure, firstFailure(pods))
}

// failureOf returns the condition of a Job that failed; nil if it has not.
func failureOf(job *batchv1.Job) *batchv1.JobCondition {
	return helper.TrueJobCondition(job, batchv1.JobFailed)
}

func firstFailure(pods []*corev1.Pod) (first *helper.PodFailure) {
	for _, pod := range pods {
		first = helper.FirstFailure(first, helper.FailureOfPod(pod))
	}
	return first
}

// anotherImage is how the pods get another image.
func (d *diagnosis) anotherImage() string {
	switch {
	case d.JobSet != nil:
		return d.kubectl("get jobset %s -o yaml  # recreate it with another image: images of a JobSet cannot be changed", d.Name)
	case d.Sequence != nil:
		then := ""
		if strategy := d.Sequence.Spec.UpdateStrategy; strategy == nil || strategy.Type != batchv1alpha1.UpdateRestart {
			then = ", then run `kubectl jobset restart " + d.ref() + "`"
		}
		return d.kubectl("edit sequentialjob %s  # correct the image of the step%s", d.Name, then)
	}
	kind, name := d.kind().Names[0], d.Name
	if owner := metav1.GetControllerOf(d.Set); owner != nil {
		kind, name = strings.ToLower(owner.Kind), owner.Name
	}
	return d.kubectl("edit %s %s  # correct the image: the groups are updated", kind, name)
}
