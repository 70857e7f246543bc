// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// one is a set in some state.
type one struct {
	framework.Test
	*takeover
	name     string
	resource schema.GroupVersionResource
}

// holder is a finalizer that only the test removes.
const holder = "example.com/hold"

func (e *one) eventually(what string, check func(context.Context) error) {
	e.Helper()
	framework.Eventually(e.T, e.name+": "+what, check)
}

// change patches the set. Conflicts and webhooks that do not answer yet are tried again.
func (e *one) change(patch string) {
	e.Helper()
	e.eventually("it is patched", func(ctx context.Context) error { return e.patch(ctx, e.resource, e.name, patch) })
}

// apply applies the manifest of the set on the server's side, and returns the resource version after that.
func (e *one) apply() (version string) {
	e.Helper()
	set := e.newSet(e.name)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		e.Fatal(err)
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))
	manifest.SetUID("")
	manifest.SetResourceVersion("")
	delete(manifest.Object, "status")
	e.eventually("it is applied", func(ctx context.Context) error {
		applied, err := cluster.Dynamic.Resource(e.resource).Namespace(e.namespace).
			Apply(ctx, e.name, manifest, metav1.ApplyOptions{FieldManager: "gitops", Force: true})
		if err == nil {
			version = applied.GetResourceVersion()
		}
		return err
	})
	return version
}

func (e *one) condition(condition string) {
	e.Helper()
	e.eventually(condition, func(context.Context) error {
		conditions, _, err := unstructured.NestedSlice(e.get(e.T, e.resource, e.name).Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == condition && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", conditions)
	})
}

// number waits until a number of the status has a value.
func (e *one) number(field string, want int64) {
	e.Helper()
	e.eventually(fmt.Sprint(field, " is ", want), func(context.Context) error {
		value, found, err := unstructured.NestedInt64(e.get(e.T, e.resource, e.name).Object, "status", field)
		if err != nil || value != want || !found {
			return fmt.Errorf("it is %d, %t, %v", value, found, err)
		}
		return nil
	})
}

func (e *one) restarts(want int64) { e.Helper(); e.number("restarts", want) }

func (e *one) updated(want int64) { e.Helper(); e.number("updatedReplicas", want) }

// list returns the pods of the set.
func (e *one) list(ctx context.Context) ([]corev1.Pod, error) {
	key := "jobset.sigs.k8s.io/jobset-name"
	if e.resource == leaderWorkerSets {
		key = "leaderworkerset.sigs.k8s.io/name"
	}
	list, err := cluster.Kube.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{LabelSelector: key + "=" + e.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// pods waits until so many pods run, and no other one exists.
func (e *one) pods(want int) {
	e.Helper()
	e.eventually(fmt.Sprint(want, " pods run"), func(ctx context.Context) error {
		pods, err := e.list(ctx)
		if err != nil {
			return err
		}
		states := map[corev1.PodPhase]int{}
		for _, p := range pods {
			states[p.Status.Phase]++
		}
		if states[corev1.PodRunning] != want || len(pods) != want {
			return fmt.Errorf("pods by phase: %v", states)
		}
		return nil
	})
}

func (e *one) podUID(name string) string {
	pod, err := cluster.Kube.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return string(pod.UID)
}

// failPod makes the first pod of the second Job fail.
func (e *one) failPod() {
	e.Helper()
	pods, err := e.list(e.Context())
	if err != nil || len(pods) == 0 {
		e.Fatalf("%s: no pod to fail: %v", e.name, err)
	}
	for _, p := range pods {
		if p.Labels["jobset.sigs.k8s.io/job-index"] == "1" && p.Status.Phase == corev1.PodRunning {
			pods = []corev1.Pod{p}
			break
		}
	}
	patch := `{"metadata":{"annotations":{"jobset-apiserver.io/kwok-outcome":"failed","jobset-apiserver.io/kwok-run-seconds":"0"}}}`
	if err := e.patch(e.Context(), corev1.SchemeGroupVersion.WithResource("pods"), pods[0].Name, patch); err != nil {
		e.Fatal(err)
	}
}

// holdJob holds the first Job by a finalizer, or no longer.
func (e *one) holdJob(hold bool) {
	e.Helper()
	name := e.name + "-workers-0"
	e.eventually("its Job is held", func(ctx context.Context) error {
		job, err := cluster.Kube.BatchV1().Jobs(e.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		job.Finalizers = slices.DeleteFunc(job.Finalizers, func(f string) bool { return f == holder })
		if hold {
			job.Finalizers = append(job.Finalizers, holder)
		}
		_, err = cluster.Kube.BatchV1().Jobs(e.namespace).Update(ctx, job, metav1.UpdateOptions{})
		return err
	})
}

// jobDeleted waits until the first Job is being deleted, its pods are gone, and the other Job runs again.
func (e *one) jobDeleted() {
	e.Helper()
	e.eventually("its Job is being deleted", func(ctx context.Context) error {
		job, err := cluster.Kube.BatchV1().Jobs(e.namespace).Get(ctx, e.name+"-workers-0", metav1.GetOptions{})
		if err == nil && job.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	e.pods(2)
}

// gone waits until the set and its pods are gone.
func (e *one) gone() {
	e.Helper()
	e.eventually("it is gone", func(ctx context.Context) error {
		_, err := cluster.Dynamic.Resource(e.resource).Namespace(e.namespace).Get(ctx, e.name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	e.pods(0)
}

// claims waits until the set has so many claims.
func (e *one) claims(want int) {
	e.Helper()
	e.eventually(fmt.Sprint(want, " claims"), func(ctx context.Context) error {
		list, err := cluster.Kube.CoreV1().PersistentVolumeClaims(e.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found := 0
		for _, claim := range list.Items {
			if strings.HasSuffix(claim.Name, e.name) {
				found++
			}
		}
		if found != want {
			return fmt.Errorf("%d of %d claims of the namespace", found, len(list.Items))
		}
		return nil
	})
}

// attempts does what the agents of the pods do when they have restarted so often, and waits until the controller has seen it.
func (e *one) attempts(attempt int64) {
	e.Helper()
	pods, err := e.list(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	for _, p := range pods {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"jobset.sigs.k8s.io/in-place-restart-attempt":"%d"}}}`, attempt)
		if err := e.patch(e.Context(), corev1.SchemeGroupVersion.WithResource("pods"), p.Name, patch); err != nil {
			e.Fatal(err)
		}
	}
	e.number("currentInPlaceRestartAttempt", attempt)
}
