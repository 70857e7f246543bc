// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	// outcomeKey and secondsKey steer pods; see docs/local-cluster.md.
	outcomeKey = "jobset-apiserver.io/kwok-outcome"
	secondsKey = "jobset-apiserver.io/kwok-run-seconds"
	setName    = "train"
)

// running and succeeding are what pods do.
var (
	running    = map[string]string{outcomeKey: "running"}
	succeeding = map[string]string{secondsKey: "3"}
)

// jobSpec is the spec of a Job with one pod. If the pod fails, the Job fails. Bare Jobs and Jobs of sets have the same spec.
func jobSpec(annotations map[string]string) batchv1.JobSpec {
	return batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1),
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
			},
		},
	}
}

// jobSpec is the spec of a Job in this cluster. Where containers may run, they do what the annotations are for on
// simulated nodes, and stop at once.
func (s *space) jobSpec(annotations map[string]string) batchv1.JobSpec {
	spec := jobSpec(annotations)
	if s.Cluster.Dir != "" {
		return spec
	}
	seconds := cmp.Or(annotations[secondsKey], "86400")
	pod := &spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To[int64](5)
	pod.Containers[0].Image = s.Image
	pod.Containers[0].Command = []string{"sh", "-c", "trap 'exit 0' TERM; sleep " + seconds + " & wait"}
	return spec
}

// set is a JobSet of so many Jobs with one pod each.
func (s *space) set(name string, jobs int, annotations map[string]string) *jobsetv1alpha2.JobSet {
	return builders.JobSet(name, builders.WithJobs("workers", int32(jobs), 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec = s.jobSpec(annotations)
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Namespace, js.Annotations = s.name, maps.Clone(s.Annotations)
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1000}
		if s.NoHostnames {
			js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(false)}
		}
	})
}

func (s *space) createSet(ctx context.Context, js *jobsetv1alpha2.JobSet) error {
	_, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Create(ctx, js, metav1.CreateOptions{})
	return err
}

func (s *space) createJob(ctx context.Context, name string, annotations map[string]string) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s.jobSpec(annotations)}
	if s.labeled {
		job.Labels, job.Annotations = setJobMetadata(name), setJobMetadata(name)
		job.Spec.Template.Labels, job.Spec.Template.Annotations = setJobMetadata(name), setJobMetadata(name)
		maps.Copy(job.Spec.Template.Annotations, annotations)
	}
	_, err := s.Cluster.Kube.BatchV1().Jobs(s.name).Create(ctx, job, metav1.CreateOptions{})
	return err
}

// setJobMetadata returns as many keys as the controller sets on a Job of a set, of the same length. No program takes the Job for
// one of a set because of them.
func setJobMetadata(name string) map[string]string {
	keys := map[string]string{}
	for _, key := range []string{
		"name", "uid", "replicatedjob-name", "replicatedjob-replicas", "global-replicas", "restart-attempt", "job-index",
		"job-global-index", "job-key", "group-name", "group-replicas", "job-group-index",
	} {
		keys["bench.sigs.k8s.io/jobset-"+key] = name
	}
	return keys
}

func jobName(i int) string { return fmt.Sprintf("bare-%d", i) }

// patchSet changes a set as an editor would.
func (s *space) patchSet(ctx context.Context, name, patch string) error {
	_, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).
		Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// failOnePod ends a pod that runs. A kubelet lets it fail by its deadline.
func (s *space) failOnePod(ctx context.Context) error {
	pods, err := s.Cluster.Kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return errors.New("no pod to let fail")
	}
	deadline := ""
	if s.Cluster.Dir == "" {
		deadline = `,"spec":{"activeDeadlineSeconds":1}`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"failed",%q:"0"}}%s}`, outcomeKey, secondsKey, deadline)
	_, err = s.Cluster.Kube.CoreV1().Pods(s.name).Patch(ctx, pods.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func isReady(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && ptr.Deref(job.Status.Ready, 0) == 1
}

func isStopped(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 0
}

func isComplete(job *batchv1.Job) bool { return hasCondition(job, batchv1.JobComplete) }

func isFailing(job *batchv1.Job) bool {
	return hasCondition(job, batchv1.JobFailureTarget, batchv1.JobFailed)
}

func hasCondition(job *batchv1.Job, oneOf ...batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(oneOf, c.Type)
	})
}

// inAttempt reports whether a Job runs in the attempt of its set that begins after so many restarts.
func inAttempt(restarts string) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool { return isReady(job) && job.Labels[jobsetv1alpha2.RestartsKey] == restarts }
}

// showsJobs reports whether the status of a set has these numbers of ready and of suspended Jobs.
func showsJobs(ready, suspended, restarts int) func(*jobsetv1alpha2.JobSet) bool {
	return func(js *jobsetv1alpha2.JobSet) bool {
		s := js.Status.ReplicatedJobsStatus
		return len(s) == 1 && int(s[0].Ready) == ready && int(s[0].Suspended) == suspended && int(js.Status.Restarts) == restarts
	}
}

func has(condition string) func(*jobsetv1alpha2.JobSet) bool {
	return func(js *jobsetv1alpha2.JobSet) bool {
		return meta.IsStatusConditionTrue(js.Status.Conditions, condition)
	}
}

func anything[T any](T) bool { return true }

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func objectMeta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}
