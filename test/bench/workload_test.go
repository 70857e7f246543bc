// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// parallel is how many requests a plain client has under way, as the controller has.
const parallel = 50

// fresh is a control plane without JobSets, for what is measured with few of them.
var fresh = sync.OnceValues(startCluster)

// workload is a namespace with sets or Jobs whose pods run until they are told to end.
type workload struct {
	*testing.B
	ctx       context.Context
	cluster   *cluster
	kube      kubernetes.Interface
	jobSets   versioned.Interface
	namespace string
}

func newWorkload(b *testing.B) *workload {
	b.Helper()
	c, err := fresh()
	if err != nil {
		b.Fatal(err)
	}
	config, err := c.throughKube()
	if err != nil {
		b.Fatal(err)
	}
	w := &workload{B: b, ctx: context.Background(), cluster: c}
	if w.kube, err = kubernetes.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	if w.jobSets, err = versioned.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if namespace, err = w.kube.CoreV1().Namespaces().Create(w.ctx, namespace, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	w.namespace = namespace.Name
	b.Cleanup(w.remove)
	return w
}

// remove deletes everything and waits until it is gone, so that it does not disturb what comes next.
func (w *workload) remove() {
	namespaces := w.kube.CoreV1().Namespaces()
	if err := namespaces.Delete(w.ctx, w.namespace, metav1.DeleteOptions{}); err != nil {
		w.Error(err)
		return
	}
	w.until("removing the namespace", func() error {
		if _, err := namespaces.Get(w.ctx, w.namespace, metav1.GetOptions{}); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

// until polls until there is no error.
func (w *workload) until(what string, check func() error) {
	w.Helper()
	problem := errors.New("not looked yet")
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		problem = check()
		return problem == nil, nil
	})
	if err != nil {
		w.Fatalf("%s: after %v: %v", what, patience, problem)
	}
}

// must ends the benchmark unless all of the calls succeed.
func (w *workload) must(n int, call func(i int) error) {
	w.Helper()
	failures := make([]error, n)
	workqueue.ParallelizeUntil(w.ctx, parallel, n, func(i int) { failures[i] = call(i) })
	if err := errors.Join(failures...); err != nil {
		w.Fatal(err)
	}
}

// createSet makes a set of so many Jobs with one pod each.
func (w *workload) createSet(name string, jobs int) {
	w.Helper()
	js := builders.JobSet(name, builders.WithJobs("workers", int32(jobs), 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec = jobSpec()
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Namespace = w.namespace
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 1000}
	})
	if _, err := w.jobSets.JobsetV1alpha2().JobSets(w.namespace).Create(w.ctx, js, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// jobSpec is that of a Job with one pod, whose failure is that of the Job.
func jobSpec() batchv1.JobSpec {
	return batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1),
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
			},
		},
	}
}

// steer gives pods an outcome: all that match the selector, or the first so many.
func (w *workload) steer(selector string, most int, outcome string) {
	w.Helper()
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"jobset-apiserver.io/kwok-outcome":%q,"jobset-apiserver.io/kwok-run-seconds":"0"}}}`, outcome)
	w.must(min(most, len(pods.Items)), func(i int) error {
		_, err := w.kube.CoreV1().Pods(w.namespace).Patch(w.ctx, pods.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// untilRunning waits until so many Jobs have their pod and none is about to go.
func (w *workload) untilRunning(selector string, jobs int) {
	w.Helper()
	w.until(fmt.Sprintf("waiting for %d Jobs that run", jobs), func() error {
		list, err := w.kube.BatchV1().Jobs(w.namespace).List(w.ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		running := 0
		for i := range list.Items {
			if job := &list.Items[i]; job.DeletionTimestamp == nil && ptr.Deref(job.Status.Ready, 0) == 1 {
				running++
			}
		}
		if running != jobs || len(list.Items) != jobs {
			return fmt.Errorf("%d of %d Jobs run", running, len(list.Items))
		}
		return nil
	})
}

// untilCounted waits until the counter in the status of a set has come to the number of its Jobs.
func (w *workload) untilCounted(name string, jobs int, counter func(jobsetv1alpha2.ReplicatedJobStatus) int32) {
	w.Helper()
	w.until("waiting for the status of "+name, func() error {
		js, err := w.jobSets.JobsetV1alpha2().JobSets(w.namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := js.Status.ReplicatedJobsStatus; len(s) != 1 || counter(s[0]) != int32(jobs) {
			return fmt.Errorf("states of the Jobs are %+v", s)
		}
		return nil
	})
}
