// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// defaultContainerKey is the annotation by which a pod names the container that people mean.
const defaultContainerKey = "kubectl.kubernetes.io/default-container"

// selection is which containers of a set are wanted.
type selection struct {
	replicatedJob string
	jobIndex      int // -1 for all
	container     string
	// step is the name of the step of a sequence; "" for all.
	step     string
	allSteps bool
	// group and worker are the indexes of a group of a LeaderWorkerSet, and of a pod in its group; "" for all.
	group, worker string
	// from is the index of the first step whose logs are followed.
	from          int
	allContainers bool
	previous      bool
}

// stream is one container of one pod.
type stream struct {
	pod       *corev1.Pod
	container string
	// rank is the place of the pod in the set, and with several containers that of the container in it: what lines begin
	// with. Pods that replace each other have the same.
	rank string
	// run counts the restarts of the container: each run has a log of its own.
	run int32
}

// validate checks the selection against the set.
func (s selection) validate(js *jobsetv1alpha2.JobSet) error {
	if s.step != "" || s.allSteps {
		return errors.New("--step, --all-steps: a JobSet has no steps; they are for SequentialJobs")
	}
	return s.validateParts(js)
}

// validateJob checks the selection against a Job, which has no parts.
func (s selection) validateJob() error {
	if err := s.withoutReplicas(); err != nil {
		return err
	}
	if s.replicatedJob != "" || s.jobIndex >= 0 {
		return errors.New("--replicated-job, --job-index: need a step that is a JobSet; choose it with --step")
	}
	return nil
}

// validateParts checks the selection against the replicatedJobs of a set.
func (s selection) validateParts(js *jobsetv1alpha2.JobSet) error {
	if err := s.withoutReplicas(); err != nil {
		return err
	}
	var names []string
	jobs := 0
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		names = append(names, rj.Name)
		if s.replicatedJob == "" || s.replicatedJob == rj.Name {
			jobs = int(helper.Replicas(rj))
		}
	}
	if s.replicatedJob != "" && !slices.Contains(names, s.replicatedJob) {
		return fmt.Errorf("--replicated-job: must be one of %s, not %q", strings.Join(names, ", "), s.replicatedJob)
	}
	switch {
	case s.jobIndex < 0:
		return nil
	case s.replicatedJob == "" && len(names) > 1:
		return fmt.Errorf("--job-index: needs --replicated-job, which is one of %s", strings.Join(names, ", "))
	case s.jobIndex >= jobs:
		return fmt.Errorf("--job-index: must be from 0 to %d, not %d", jobs-1, s.jobIndex)
	}
	return nil
}

// wants reports whether the pod is of the Jobs that are wanted.
func (s selection) wants(pod *corev1.Pod) bool {
	inJob := s.jobIndex < 0 || snapshot.JobIndex(pod) == s.jobIndex
	return s.inStep(pod) && s.inReplica(pod) && inJob && (s.replicatedJob == "" || snapshot.ReplicatedJob(pod) == s.replicatedJob)
}

// inStep reports whether the pod is of the step that is wanted.
func (s selection) inStep(pod *corev1.Pod) bool {
	if s.step != "" {
		return pod.Labels[batchv1alpha1.StepNameKey] == s.step
	}
	index, err := strconv.Atoi(pod.Labels[batchv1alpha1.StepIndexKey])
	return err != nil || index >= s.from
}

// stepWords name the step that is wanted, for sentences.
func (s selection) stepWords() string {
	if s.step == "" {
		return ""
	}
	return fmt.Sprintf("step %s of ", s.step)
}

// streams returns the containers of the pod that are wanted and have a log.
func (s selection) streams(pod *corev1.Pod) []stream {
	if !s.wants(pod) {
		return nil
	}
	var out []stream
	for _, name := range s.containers(pod) {
		status := statusOf(pod, name)
		if !hasLog(pod, status, s.previous) {
			continue
		}
		st := stream{pod: pod, container: name, rank: rank(pod)}
		if s.allContainers {
			st.rank += " " + name
		}
		if status != nil {
			st.run = status.RestartCount
		}
		out = append(out, st)
	}
	return out
}

// containers returns the names of the containers that are wanted of a pod, in the order in which they start.
func (s selection) containers(pod *corev1.Pod) []string {
	names := containerNames(pod)
	switch {
	case s.allContainers:
		return names
	case s.container != "":
		if slices.Contains(names, s.container) {
			return []string{s.container}
		}
		return nil
	}
	return []string{defaultContainer(pod)}
}

func containerNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

func defaultContainer(pod *corev1.Pod) string {
	if name := pod.Annotations[defaultContainerKey]; slices.Contains(containerNames(pod), name) {
		return name
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	if i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == container }); i >= 0 {
		return &all[i]
	}
	return nil
}

// hasLog reports whether a container has run, or for the previous log, whether it was restarted.
func hasLog(pod *corev1.Pod, status *corev1.ContainerStatus, previous bool) bool {
	switch {
	case status == nil:
		return !previous && pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""
	case previous:
		return status.RestartCount > 0 || status.LastTerminationState.Terminated != nil
	}
	return status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil
}

// rank is what lines of a pod begin with: replicatedJob, index of the Job, index of the pod. A pod of a Job that does not
// count its pods has the end of its name. Pods of a sequence have the step before it; those of a Job that does not count its pods
// have only that.
func rank(pod *corev1.Pod) string {
	step := pod.Labels[batchv1alpha1.StepNameKey]
	switch {
	case pod.Labels[leaderworkersetv1.SetNameLabelKey] != "":
		return rankInReplica(pod)
	case step == "":
		return rankInSet(pod)
	case snapshot.ReplicatedJob(pod) != "":
		return step + " " + rankInSet(pod)
	case snapshot.PodIndex(pod) >= 0:
		return fmt.Sprintf("%s-%d", step, snapshot.PodIndex(pod))
	}
	return step
}

func rankInSet(pod *corev1.Pod) string {
	index := fmt.Sprint(snapshot.PodIndex(pod))
	if snapshot.PodIndex(pod) < 0 {
		index = pod.Name[strings.LastIndexByte(pod.Name, '-')+1:]
	}
	return fmt.Sprintf("%s-%d-%s", snapshot.ReplicatedJob(pod), snapshot.JobIndex(pod), index)
}

// distinguish adds the ends of the pods' names where several pods have the same rank, the older first.
func distinguish(streams []stream) {
	type place struct{ rank, container string }
	count := map[place]int{}
	for _, s := range streams {
		count[place{s.rank, s.container}]++
	}
	for i := range streams {
		if s := &streams[i]; count[place{s.rank, s.container}] > 1 {
			s.rank += " " + s.pod.Name[strings.LastIndexByte(s.pod.Name, '-')+1:]
		}
	}
}

// failedFirst returns the pod that failed first, and the container of it that did; nil if none failed.
func failedFirst(pods []*corev1.Pod) (*corev1.Pod, string) {
	type failure struct {
		pod       *corev1.Pod
		container string
		at        time.Time
	}
	var failures []failure
	for _, pod := range pods {
		for _, name := range containerNames(pod) {
			if status := statusOf(pod, name); status != nil {
				if end := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated); end != nil && end.ExitCode != 0 {
					failures = append(failures, failure{pod, name, end.FinishedAt.Time})
				}
			}
		}
	}
	if len(failures) == 0 {
		i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
		if i < 0 {
			return nil, ""
		}
		return pods[i], defaultContainer(pods[i])
	}
	first := slices.MinFunc(failures, func(a, b failure) int { return a.at.Compare(b.at) })
	return first.pod, first.container
}

// created is when the pod was made, with the second as the unit.
func created(pod *corev1.Pod) time.Time { return pod.CreationTimestamp.Time }

// stopped is when the pod ended, or was told to; zero for one that goes on.
func stopped(pod *corev1.Pod) time.Time {
	var at time.Time
	if pod.DeletionTimestamp != nil {
		at = pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	var last metav1.Time
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated == nil {
			return at
		}
		if last.Before(&status.State.Terminated.FinishedAt) {
			last = status.State.Terminated.FinishedAt
		}
	}
	if !last.IsZero() && (at.IsZero() || last.Time.Before(at)) {
		at = last.Time
	}
	return at
}
