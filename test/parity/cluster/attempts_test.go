// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// causeOf returns what a cause says that is the same in every run.
func causeOf(a jobsetv1alpha2.Attempt) string {
	c := a.FirstCause
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s on %s: %s %d %s", c.Job, c.Pod, c.Node, c.Container, ptr.Deref(c.ExitCode, -1), c.Reason)
}

// TestFirstCauseWithARealJobController has the Job controller delete pods as it does: those whose containers restart as
// soon as it knows that the Job fails, and the others with their Job.
func TestFirstCauseWithARealJobController(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		t.Run(string(policy), func(t *testing.T) {
			e := newEnv(t)
			e.create(jobSetOf(builders.WithJobs("w", 2, 1, steer("running"), func(rj *replicatedJob) {
				rj.Template.Spec.Template.Spec.RestartPolicy = policy
				// Simulated nodes delete pods immediately; a kubelet has containers to stop.
				rj.Template.Spec.Template.Annotations["jobset-apiserver.io/kwok-stop-after"] = "5s"
			}), func(js *jobSet) { js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1} }))
			pod := e.awaitRunning("set-w-1", 1)[0]
			e.awaitRunning("", 2)
			if policy == corev1.RestartPolicyNever {
				e.end("failed", []corev1.Pod{pod})
			} else {
				e.restartContainer(pod)
			}
			container := pod.Spec.Containers[0].Name
			want := fmt.Sprintf("set-w-1 %s on %s: %s 1 Error", pod.Name, pod.Spec.NodeName, container)
			e.awaitAttempt(1, "set-w-0", "set-w-1")
			e.eventually(func() string {
				for _, p := range e.pods("") {
					if p.UID == pod.UID {
						return "the pod that failed is there still"
					}
				}
				return ""
			})
			attempts := e.get("set").Status.Attempts
			if diff := cmp.Diff([]string{want, ""}, []string{causeOf(attempts[0]), causeOf(attempts[1])}); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			again := &batchv1alpha1.JobSetRestart{Spec: batchv1alpha1.JobSetRestartSpec{Scope: batchv1alpha1.RestartScopeReplicatedJob, ReplicatedJob: "w"}}
			if _, err := e.sets.Restart(e.Context(), "set", again, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			e.eventually(func() string {
				a := e.get("set").Status.Attempts
				if last := a[len(a)-1]; last.Number != 3 || last.ReadyTime == nil {
					return fmt.Sprintf("the last attempt is %+v", last)
				}
				return ""
			})
			e.end("succeeded", e.awaitRunning("", 2))
			e.awaitCompleted("set")
		})
	}
}

// restartContainer plays a kubelet that starts the container of a pod again after it has failed.
func (e *env) restartContainer(pod corev1.Pod) {
	e.Helper()
	patch := fmt.Sprintf(`{"status":{"containerStatuses":[{"name":%q,"restartCount":1,"lastState":{"terminated":{"exitCode":1,"reason":"Error","finishedAt":%q}}}]}}`,
		pod.Spec.Containers[0].Name, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	_, err := shared.Kube.CoreV1().Pods(e.namespace).Patch(e.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		e.Fatal(err)
	}
}
