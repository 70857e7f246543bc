// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	setName    = "train"
	groupsName = "serve"
	// size is the number of pods of each, one on each node.
	size = 2
)

// workload is a JobSet and a LeaderWorkerSet that run until something ends them.
type workload struct {
	namespace string
	// uid is the UID of the Job of the set. It has a pod on each node.
	uid types.UID
}

// podSpec spreads pods over the nodes that are not tainted, and lets them stay five seconds on one that is lost, which
// are five minutes by default.
func podSpec(labels map[string]string) corev1.PodSpec {
	var tolerations []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5),
		})
	}
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "main", Image: localcluster.ProgramImage}},
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		Tolerations:                   tolerations,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}},
	}
}

// newWorkload creates both sets, and waits until they run.
func newWorkload(t *testing.T) *workload {
	t.Helper()
	created, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "work-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &workload{namespace: created.Name}
	t.Cleanup(func() {
		if err := core.CoreV1().Namespaces().Delete(context.Background(), w.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	labels := map[string]string{jobsetv1alpha2.JobSetNameKey: setName}
	spec := podSpec(labels)
	spec.RestartPolicy = corev1.RestartPolicyNever
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: setName}, Spec: jobsetv1alpha2.JobSetSpec{
		FailurePolicy: &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3},
		ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{
			Name: "w", Replicas: ptr.To[int32](1),
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Completions: ptr.To[int32](size), Parallelism: ptr.To[int32](size), BackoffLimit: ptr.To[int32](0),
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			}},
		}},
	}}
	if _, err := jobsets.JobsetV1alpha2().JobSets(w.namespace).Create(t.Context(), js, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: groupsName}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To[int32](1),
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			GroupSize:      ptr.To[int32](size),
			WorkerTemplate: corev1.PodTemplateSpec{Spec: podSpec(map[string]string{leaderworkersetv1.SetNameLabelKey: groupsName})},
		},
	}}
	if _, err := jobsets.LeaderworkersetV1().LeaderWorkerSets(w.namespace).Create(t.Context(), lws, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &steps{Test: framework.Test{T: t}}
	w.ready(s)
	w.uid = w.job(s).UID
	return w
}

// pods returns all pods of both sets by their names.
func (w *workload) pods(s *steps) map[string]*corev1.Pod {
	s.Helper()
	list, err := core.CoreV1().Pods(w.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}

// ready waits until both sets have all of their pods, and those are ready.
func (w *workload) ready(s *steps) {
	s.Helper()
	framework.Eventually(s, "both sets run", func(context.Context) error {
		ready := 0
		pods := w.pods(s)
		for _, pod := range pods {
			if podReady(pod) {
				ready++
			}
		}
		if ready != 2*size || len(pods) != 2*size {
			return fmt.Errorf("%d of %d pods are ready, must be %d", ready, len(pods), 2*size)
		}
		return nil
	})
}

func (w *workload) set(s *steps) *jobsetv1alpha2.JobSet {
	s.Helper()
	js, err := jobsets.JobsetV1alpha2().JobSets(w.namespace).Get(s.Context(), setName, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return js
}

// job returns the Job of the set, under the name that each attempt gives it.
func (w *workload) job(s *steps) *batchv1.Job {
	s.Helper()
	job, err := core.BatchV1().Jobs(w.namespace).Get(s.Context(), setName+"-w-0", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return job
}
