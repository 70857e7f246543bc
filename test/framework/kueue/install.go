// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue stands in for Kueue in tests: definitions of its kinds with the limits that it documents, and a small controller
// that makes Workloads, admits and evicts them through the same API.
package kueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "embed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

//go:embed crds.yaml
var manifest string

const (
	group = "kueue.x-k8s.io"
	// installTimeout is how long the kinds may take to be served, or to be gone.
	installTimeout, installPoll = 5 * time.Minute, 100 * time.Millisecond
)

// Resources of Kueue.
var (
	Workloads       = resource("workloads")
	ClusterQueues   = resource("clusterqueues")
	LocalQueues     = resource("localqueues")
	ResourceFlavors = resource("resourceflavors")
	PriorityClasses = resource("workloadpriorityclasses")
)

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1beta2", Resource: plural}
}

// Install defines the kinds of Kueue, and waits until they are served.
func Install(ctx context.Context, client dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, object := range objects() {
		if err := create(ctx, client.Resource(resourceOf(object)), object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	var last error
	err := wait.PollUntilContextCancel(ctx, installPoll, true, func(ctx context.Context) (bool, error) {
		for _, r := range []schema.GroupVersionResource{Workloads, ClusterQueues, LocalQueues, ResourceFlavors, PriorityClasses} {
			if _, err := client.Resource(r).List(ctx, metav1.ListOptions{}); err != nil {
				last = fmt.Errorf("%s: %w", r.Resource, err)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// create creates an object, or finds that it is there to stay. One that is being deleted is waited for.
func create(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	return wait.PollUntilContextCancel(ctx, installPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return true, err
		}
		current, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, ignore(err)
		}
		return current.GetDeletionTimestamp() == nil, nil
	})
}

// Uninstall removes the kinds with all of their objects, and waits until all are gone.
func Uninstall(ctx context.Context, client dynamic.Interface) error {
	if err := dropFinalizers(ctx, client); err != nil {
		return err
	}
	for _, object := range objects() {
		err := client.Resource(resourceOf(object)).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, installPoll, installTimeout, true, func(ctx context.Context) (bool, error) {
		for _, object := range objects() {
			if _, err := client.Resource(resourceOf(object)).Get(ctx, object.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return false, nil
			}
		}
		_, err := client.Resource(Workloads).List(ctx, metav1.ListOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// dropFinalizers removes the finalizers of Workloads, which no controller finishes any more.
func dropFinalizers(ctx context.Context, client dynamic.Interface) error {
	list, err := client.Resource(Workloads).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range list.Items {
		if len(w.GetFinalizers()) > 0 {
			// Whatever version it has by now.
			_, err := client.Resource(Workloads).Namespace(w.GetNamespace()).
				Patch(ctx, w.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			errs = append(errs, ignore(err))
		}
	}
	return errors.Join(errs...)
}

// objects are the objects of the manifest.
func objects() (all []*unstructured.Unstructured) {
	for _, document := range strings.Split(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			panic(err) // the manifest is part of the program
		}
		all = append(all, object)
	}
	return all
}

func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := object.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	if before, policy := strings.CutSuffix(plural, "ys"); policy {
		plural = before + "ies"
	}
	return gvk.GroupVersion().WithResource(plural)
}
