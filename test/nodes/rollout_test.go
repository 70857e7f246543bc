// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// webSet is two groups of three pods that answer together: the leader asks its workers for each request, and is ready
// only if they are of its own revision and answer. Before it ends, a leader waits until no Service sends requests to it
// any more; its workers end after it.
func webSet() *leaderworkersetv1.LeaderWorkerSet {
	container := corev1.Container{Name: "main", Image: localcluster.ProgramImage}
	serving(&container, corev1.EnvVar{Name: "ANSWER", Value: "old"})
	container.ReadinessProbe.FailureThreshold = 3
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](30), Containers: []corev1.Container{container}}}
	leader := template.DeepCopy()
	leader.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 20}}}
	return &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To[int32](2),
		RolloutStrategy: leaderworkersetv1.RolloutStrategy{
			Type: leaderworkersetv1.RolloutStrategyRollingUpdate,
			RollingUpdateConfiguration: &leaderworkersetv1.RollingUpdateConfiguration{
				MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
			},
		},
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{GroupSize: ptr.To[int32](3), LeaderTemplate: leader, WorkerTemplate: template},
	}}
}

// TestUpdateFailsNoRequest updates groups while a client sends 20 requests a second to them through a Service. None of
// them may fail. It does not run beside other tests: where kube-proxy starves, it still routes to groups that are gone.
func TestUpdateFailsNoRequest(t *testing.T) {
	e := newEnv(t)
	sets := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	if _, err := sets.Create(t.Context(), webSet(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := core.CoreV1().Services(e.namespace).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{leaderworkersetv1.SetNameLabelKey: "web", leaderworkersetv1.WorkerIndexLabelKey: "0"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.updated("web")
	client := e.client("http://front/")
	e.counted(client, 20, "old old old")

	began := time.Now()
	patch := `[{"op": "replace", "path": "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/env/0/value", "value": "new"},
		{"op": "replace", "path": "/spec/leaderWorkerTemplate/leaderTemplate/spec/containers/0/env/0/value", "value": "new"}]`
	if _, err := sets.Patch(t.Context(), "web", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e.updated("web")
	took := time.Since(began)
	before := e.counts(client)
	got := e.counted(client, before.Answers["new new new"]+40, "new new new")
	t.Logf("update in %.1fs: %d requests, %d failures, answers %v", took.Seconds(), got.Requests, got.Failures, got.Answers)
	if got.Failures > 0 {
		t.Errorf("%d of %d requests have failed: %v", got.Failures, got.Requests, got.Errors)
	}
	for _, answer := range slices.Sorted(maps.Keys(got.Answers)) {
		if answer != "old old old" && answer != "new new new" {
			t.Errorf("%d answers are %q: of a group with two revisions", got.Answers[answer], answer)
		}
	}
	if got.Answers["old old old"] <= 20 {
		t.Errorf("answers are %v: none of them during the update", got.Answers)
	}
}

// updated waits until a set has two groups of the last revision and no others.
func (e *env) updated(name string) {
	e.Helper()
	framework.Eventually(e, name+" is updated", func(ctx context.Context) error {
		lws, err := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := e.pods(ctx, leaderworkersetv1.SetNameLabelKey+"="+name)
		if err != nil {
			return err
		}
		status := lws.Status
		if status.ObservedGeneration < lws.Generation || status.UpdatedReplicas != 2 || status.ReadyReplicas != 2 || len(pods) != 6 ||
			!meta.IsStatusConditionTrue(status.Conditions, leaderworkersetv1.ConditionAvailable) {
			return fmt.Errorf("%d pods, status %+v", len(pods), status)
		}
		return nil
	})
}

// client starts a pod that sends requests.
func (e *env) client(url string) *corev1.Pod {
	e.Helper()
	_, err := core.CoreV1().Pods(e.namespace).Create(e.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "client", Labels: map[string]string{"app": "client"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{{Name: "main", Image: localcluster.ProgramImage, Args: []string{"load", url}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return &e.running("app=client", 1)[0]
}

// counts are the counts of the program.
type counts struct {
	Requests, Failures int
	Answers, Errors    map[string]int
}

func (e *env) counts(client *corev1.Pod) (got counts) {
	e.Helper()
	if err := json.NewDecoder(strings.NewReader(e.asked(client, "/"))).Decode(&got); err != nil {
		e.Fatal(err)
	}
	return got
}

// counted waits until a client has got an answer more often than that.
func (e *env) counted(client *corev1.Pod, more int, answer string) (got counts) {
	e.Helper()
	framework.Eventually(e, fmt.Sprintf("more than %d answers are %q", more, answer), func(ctx context.Context) error {
		text, err := ask(ctx, client, "/")
		if err != nil {
			return err
		}
		got = counts{}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			return err
		}
		if got.Answers[answer] <= more {
			return fmt.Errorf("counts are %+v", got)
		}
		return nil
	})
	return got
}
