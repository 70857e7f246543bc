// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// stopTimeout is how long the pods of a controller may take to end.
const stopTimeout = 3 * time.Minute

// deploymentsBehind returns the Deployments whose pods a Service selects.
func deploymentsBehind(ctx context.Context, client kubernetes.Interface, service types.NamespacedName) ([]appsv1.Deployment, error) {
	s, err := client.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && len(s.Spec.Selector) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := client.AppsV1().Deployments(service.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	return slices.DeleteFunc(all.Items, func(d appsv1.Deployment) bool {
		return !selector.Matches(labels.Set(d.Spec.Template.Labels))
	}), nil
}

// scale sets the replicas of a Deployment, and waits until it has no pods when they are 0. It returns how many it had.
func scale(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, replicas int32) (before int32, err error) {
	deployments := client.AppsV1().Deployments(name.Namespace)
	current, err := deployments.GetScale(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading the scale of Deployment %s: %w", name, err)
	}
	before = current.Spec.Replicas
	if before != replicas {
		current.Spec.Replicas = replicas
		if _, err := deployments.UpdateScale(ctx, name.Name, current, metav1.UpdateOptions{}); err != nil {
			return before, fmt.Errorf("scaling Deployment %s to %d: %w", name, replicas, err)
		}
	}
	if replicas > 0 {
		return before, nil
	}
	err = wait.PollUntilContextTimeout(ctx, routePoll, stopTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(name.Namespace).List(ctx, metav1.ListOptions{LabelSelector: current.Status.Selector})
		return err == nil && len(pods.Items) == 0, nil
	})
	if wait.Interrupted(err) {
		return before, fmt.Errorf("the pods of Deployment %s have not ended after %s", name, stopTimeout)
	}
	return before, err
}

// noteReplicas notes the replicas of Deployments unless an earlier attempt has: they may be 0 by now.
func noteReplicas(into map[string]int32, deployments []appsv1.Deployment) {
	for _, d := range deployments {
		name := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}.String()
		if _, noted := into[name]; !noted {
			into[name] = ptr.Deref(d.Spec.Replicas, 1)
		}
	}
}

// scaleAll scales Deployments by what the journal says they had. One that does not exist any more is left out.
func (m *mover) scaleAll(ctx context.Context, replicas map[string]int32, to func(had int32) int32) error {
	if err := m.journal.write(ctx, m.kube); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(replicas)) {
		namespace, name, _ := strings.Cut(key, "/")
		_, err := scale(ctx, m.kube, types.NamespacedName{Namespace: namespace, Name: name}, to(replicas[key]))
		if apierrors.IsNotFound(err) {
			fmt.Fprintf(m.out, "Deployment %s does not exist any more\n", key)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownLabel is the label of the Deployments of jobset-controller. Their names may be those of the other controllers.
const ownLabel = "app.kubernetes.io/name=jobset-controller"

// stopOwn scales jobset-controller to 0.
func (m *mover) stopOwn(ctx context.Context) error {
	own, err := m.kube.AppsV1().Deployments(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: ownLabel})
	if err != nil {
		return fmt.Errorf("looking for jobset-controller: %w", err)
	}
	noteReplicas(m.journal.OwnReplicas, own.Items)
	return m.scaleAll(ctx, m.journal.OwnReplicas, func(int32) int32 { return 0 })
}

// startOwn gives jobset-controller its replicas back, and at least one: an installation beside another controller has none yet.
func (m *mover) startOwn(ctx context.Context, _ *StepRecord) error {
	if len(m.journal.OwnReplicas) == 0 {
		fmt.Fprintf(m.out, "Namespace %s has no Deployment with the label %s: start jobset-controller yourself\n", systemNamespace, ownLabel)
		return nil
	}
	return m.scaleAll(ctx, m.journal.OwnReplicas, func(had int32) int32 { return max(had, 1) })
}

// startOthers gives the other controllers their replicas back.
func (m *mover) startOthers(ctx context.Context, _ *StepRecord) error {
	if len(m.journal.Replicas) == 0 {
		fmt.Fprintln(m.out, "No Deployment of another controller was stopped: start it yourself")
		return nil
	}
	return m.scaleAll(ctx, m.journal.Replicas, func(had int32) int32 { return had })
}
