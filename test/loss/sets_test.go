// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// Annotations that steer simulated pods (docs/local-cluster.md).
const (
	outcomeKey    = "jobset-apiserver.io/kwok-outcome"
	runSecondsKey = "jobset-apiserver.io/kwok-run-seconds"
)

// namespace creates one. It stays: the cluster goes with the tests.
func (c *cluster) namespace(t *testing.T, name string) string {
	t.Helper()
	ns, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "loss-" + name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func setName(i int) string { return fmt.Sprintf("train-%04d", i) }

// create creates sets of one Job with one pod that runs until the test ends it.
func (c *cluster) create(t *testing.T, namespace string, from, to int) {
	t.Helper()
	failures := make([]error, to-from)
	workqueue.ParallelizeUntil(t.Context(), 20, to-from, func(i int) {
		set := builders.JobSet(setName(from+i), builders.WithJobs("workers", 1, 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
			rj.Template.Spec.Template.Annotations = map[string]string{outcomeKey: "running"}
		}))
		set.Namespace = namespace
		_, failures[i] = c.JobSets.JobsetV1alpha2().JobSets(namespace).Create(t.Context(), set, metav1.CreateOptions{})
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

// children are the Jobs and the pods of a namespace, by name.
type children struct {
	jobs map[string]batchv1.Job
	pods map[string]corev1.Pod
}

// children reads them. The answers of the cache are good enough for what is watched for a while.
func (c *cluster) children(ctx context.Context, namespace string) (*children, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	jobs, err := c.Kube.BatchV1().Jobs(namespace).List(ctx, cached)
	if err != nil {
		return nil, err
	}
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, cached)
	if err != nil {
		return nil, err
	}
	found := &children{map[string]batchv1.Job{}, map[string]corev1.Pod{}}
	for i := range jobs.Items {
		found.jobs[jobs.Items[i].Name] = jobs.Items[i]
	}
	for i := range pods.Items {
		found.pods[pods.Items[i].Name] = pods.Items[i]
	}
	return found, nil
}

// running waits until so many sets run, and returns their children.
func (c *cluster) running(t *testing.T, namespace string, count int) *children {
	t.Helper()
	var found *children
	framework.Eventually(t, "all pods run", func(ctx context.Context) (err error) {
		if found, err = c.children(ctx, namespace); err != nil {
			return err
		}
		up := 0
		for _, pod := range found.pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				up++
			}
		}
		if up != count || len(found.jobs) != count {
			return fmt.Errorf("%d Jobs, %d running pods, must be %d", len(found.jobs), up, count)
		}
		return nil
	})
	return found
}

// lost returns the Jobs that are gone, are being deleted or were replaced, and those whose pods are.
func (before *children) lost(now *children) []string {
	lost := map[string]bool{}
	for name, job := range before.jobs {
		if at, found := now.jobs[name]; !found || at.UID != job.UID || at.DeletionTimestamp != nil {
			lost["job "+name] = true
		}
	}
	for name, pod := range before.pods {
		if at, found := now.pods[name]; !found || at.UID != pod.UID || at.DeletionTimestamp != nil || at.Status.Phase != corev1.PodRunning {
			lost["pod "+name] = true
		}
	}
	return slices.Sorted(maps.Keys(lost))
}

// deletedJobs is the number of Jobs among what was lost.
func deletedJobs(lost []string) int {
	return len(slices.DeleteFunc(slices.Clone(lost), func(name string) bool { return !strings.HasPrefix(name, "job ") }))
}

// watch looks for a while what becomes of the children, or until the condition holds. It returns what was lost at any time, which also the last
// look shows, so that a look without an answer hides nothing unless it is the last one.
func (c *cluster) watch(t *testing.T, namespace string, before *children, duration time.Duration, until func(lost []string) bool) []string {
	t.Helper()
	all := map[string]bool{}
	interval := time.Second + time.Duration(len(before.jobs))*5*time.Millisecond
	var unanswered error
	err := wait.PollUntilContextTimeout(t.Context(), interval, duration, true, func(ctx context.Context) (bool, error) {
		c.touchServices(ctx)
		now, err := c.children(ctx, namespace)
		if ctx.Err() != nil {
			return false, nil
		}
		if unanswered = err; err != nil {
			return false, nil
		}
		for _, name := range before.lost(now) {
			all[name] = true
		}
		return until(slices.Sorted(maps.Keys(all))), nil
	})
	if err = errors.Join(err, unanswered); unanswered != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

func never([]string) bool { return false }

// finish ends the pods of a namespace whose names begin so, with success.
func (c *cluster) finish(t *testing.T, namespace, prefix string) {
	t.Helper()
	found, err := c.children(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range found.pods {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	failures := make([]error, len(names))
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"succeeded",%q:"0"}}}`, outcomeKey, runSecondsKey)
	workqueue.ParallelizeUntil(t.Context(), 20, len(names), func(i int) {
		_, failures[i] = c.Kube.CoreV1().Pods(namespace).Patch(t.Context(), names[i], types.MergePatchType, patch, metav1.PatchOptions{})
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

// completes waits until a set has completed.
func (c *cluster) completes(t *testing.T, namespace, name string) {
	t.Helper()
	framework.Eventually(t, "the set "+name+" completes", func(ctx context.Context) error {
		set, err := c.JobSets.JobsetV1alpha2().JobSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && set.Status.TerminalState != jobsetv1alpha2.TerminalStateCompleted {
			err = fmt.Errorf("its status is %+v", set.Status)
		}
		return err
	})
}

// childrenGo waits until the Jobs and pods of a set are gone.
func (c *cluster) childrenGo(t *testing.T, namespace, set string) {
	t.Helper()
	framework.Eventually(t, "the Jobs of "+set+" are gone", func(ctx context.Context) error {
		found, err := c.children(ctx, namespace)
		if err != nil {
			return err
		}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(found.jobs)), slices.Collect(maps.Keys(found.pods))) {
			if strings.HasPrefix(name, set) {
				return fmt.Errorf("%s still exists", name)
			}
		}
		return nil
	})
}

// deleteNamespace begins to delete a namespace.
func (c *cluster) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	if err := c.Kube.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) namespaceExists(ctx context.Context, name string) (bool, error) {
	_, err := c.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// namespaceEnds waits until a namespace is gone, and returns how long that took.
func (c *cluster) namespaceEnds(t *testing.T, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	framework.Eventually(t, "the namespace is gone", func(ctx context.Context) error {
		exists, err := c.namespaceExists(ctx, name)
		if err == nil && exists {
			err = errors.New("it still exists")
		}
		return err
	})
	return time.Since(begin)
}
