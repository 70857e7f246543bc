// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func needs(status jobsetv1alpha2.DependsOnStatus, names ...string) func(*replicatedJob) {
	return func(rj *replicatedJob) {
		for _, name := range names {
			rj.DependsOn = append(rj.DependsOn, jobsetv1alpha2.DependsOn{Name: name, Status: status})
		}
	}
}

// startsLate makes pods wait behind a startup probe; the simulated nodes take two seconds for it.
func startsLate(rj *replicatedJob) {
	pod := &rj.Template.Spec.Template
	pod.Annotations["jobset-apiserver.io/kwok-start-after"] = "2s"
	pod.Spec.Containers[0].StartupProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
	}
}

func TestRow7_4_06_DependsOn(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	t.Run("the trainer waits for two initializers", func(t *testing.T) {
		e := newEnv(t)
		o := e.record()
		e.create(jobSetOf(builders.WithJobs("dataset", 1, 1, steer("1")), builders.WithJobs("model", 1, 1, steer("2")),
			builders.WithJobs("trainer", 1, 1, steer("1"), needs(jobsetv1alpha2.DependencyComplete, "dataset", "model"))))
		e.awaitCompleted("set")
		e.inOrder(o, complete("set-dataset-0"), created("set-trainer-0"))
		e.inOrder(o, complete("set-model-0"), created("set-trainer-0"))
	})
	t.Run("the trainer waits until the coordinator is ready", func(t *testing.T) {
		e := newEnv(t)
		o := e.record()
		e.create(jobSetOf(builders.WithJobs("coordinator", 1, 1, steer("6"), startsLate),
			builders.WithJobs("trainer", 1, 1, steer("1"), needs(jobsetv1alpha2.DependencyReady, "coordinator"))))
		e.awaitCompleted("set")
		e.inOrder(o, ready("set-coordinator-0"), created("set-trainer-0"))
	})
	t.Run("five trainers wait until the launcher is ready", func(t *testing.T) {
		e := newEnv(t)
		o := e.record()
		e.create(jobSetOf(builders.WithJobs("launcher", 1, 1, steer("6"), startsLate),
			builders.WithJobs("trainer", 5, 1, steer("1"), needs(jobsetv1alpha2.DependencyReady, "launcher"))))
		e.awaitCompleted("set")
		e.inOrder(o, ready("set-launcher-0"), created("set-trainer-0"))
		e.inOrder(o, ready("set-launcher-0"), created("set-trainer-4"))
	})
}

func TestRow7_4_07_ApplyingTwiceChangesNothing(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("failure-policy-restartjobset-ignore")
	e.awaitRunning("", 3)
	before := e.get("for-ever").Generation
	e.example("failure-policy-restartjobset-ignore")
	if after := e.get("for-ever").Generation; after != before {
		t.Errorf("generation: got %d, want %d", after, before)
	}
}

func onFailure(action jobsetv1alpha2.FailurePolicyAction) func(*jobSet) {
	return func(js *jobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
			MaxRestarts: 1, Rules: []jobsetv1alpha2.FailurePolicyRule{{Action: action}},
		}
	}
}

func TestRow7_4_09_RestartJobSet(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 2, 1, steer("running")), onFailure(jobsetv1alpha2.RestartJobSet)))
	e.awaitRunning("", 2)
	e.failJob("set-rjob-0", 1)
	e.awaitAttempt(1, "set-rjob-0", "set-rjob-1")
	e.end("succeeded", e.awaitRunning("", 2))
	js := e.awaitCompleted("set")
	if diff := cmp.Diff(restarts{All: 1, Counted: 1}, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
}

func TestRow7_4_10_InPlaceRestartIsAccepted(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.example("in-place-restart-main")
	e.awaitJobs("in-place-workers-0", "in-place-workers-1")
	// Jobs that give up on failed pods cannot be restarted in place.
	js := e.get("in-place")
	js.ObjectMeta = metav1.ObjectMeta{Name: "limited"}
	js.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = ptr.To[int32](6)
	_, err := e.sets.Create(t.Context(), js, metav1.CreateOptions{})
	if want := "spec.replicatedJobs[0].template.spec.backoffLimit"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("a backoffLimit of 6 with InPlaceRestart: %v, want that %s is invalid", err, want)
	}
}

func TestRow7_4_11_RestartJobShowsInThePods(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	keys := []string{jobsetv1alpha2.JobIndexKey, jobsetv1alpha2.JobRestartAttemptKey}
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 2, 1, steer("running"), func(rj *replicatedJob) {
		container := &rj.Template.Spec.Template.Spec.Containers[0]
		for i, name := range []string{"JOB_INDEX", "ATTEMPT"} {
			path := "metadata.annotations['" + keys[i] + "']"
			container.Env = append(container.Env, corev1.EnvVar{
				Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
			})
		}
	}), onFailure(jobsetv1alpha2.RestartJob)))
	e.awaitRunning("", 2)
	old := e.jobs()["set-rjob-1"].UID
	e.failJob("set-rjob-1", 1)
	e.eventually(func() string {
		if job := e.jobs()["set-rjob-1"]; job == nil || job.UID == old {
			return "the failed Job was not recreated"
		}
		return ""
	})
	pods := e.awaitRunning("", 2)
	for _, pod := range pods {
		index := pod.Labels[jobsetv1alpha2.JobIndexKey]
		got := map[string]string{}
		for i, env := range pod.Spec.Containers[0].Env[:len(keys)] {
			if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil || env.ValueFrom.FieldRef.FieldPath != "metadata.annotations['"+keys[i]+"']" {
				t.Errorf("%s of pod %s comes from %v", env.Name, pod.Name, env.ValueFrom)
			}
			got[keys[i]] = pod.Annotations[keys[i]]
		}
		// Job 1 was restarted once, Job 0 was not.
		want := map[string]string{keys[0]: index, keys[1]: index}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("annotations of pod %s (-want +got):\n%s", pod.Name, diff)
		}
	}
	e.end("succeeded", pods)
	js := e.awaitCompleted("set")
	want := restarts{Jobs: map[string][]int32{"rjob": {0, 1}}, JobsCounted: map[string][]int32{"rjob": {0, 1}}}
	if diff := cmp.Diff(want, restartsOf(js)); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
}

// The pods of a gang are in TestRow7_1_28_PodsNameTheirTopologyGroup.
func TestRow7_4_12_PodsWithoutAGroup(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	e := newEnv(t)
	e.create(jobSetOf(builders.WithJobs("rjob", 2, 2, steer("1"))))
	e.awaitCompleted("set")
	for _, pod := range e.pods("") {
		if pod.Spec.SchedulingGroup != nil {
			t.Errorf("pod %s is in the scheduling group %v, want none", pod.Name, pod.Spec.SchedulingGroup)
		}
	}
}
