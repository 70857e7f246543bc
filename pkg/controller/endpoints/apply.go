// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpoints/slices"
)

// errNamespaceEnds means that nothing can be created any more.
var errNamespaceEnds = errors.New("the namespace is being terminated")

// write writes the slices of a set, and returns whether anything was to be written.
func (c *Controller) write(ctx context.Context, obs *observed) (wrote bool, err error) {
	writes := slices.Plan(obs.key.Name, obs.service, obs.pods, obs.ours)
	if obs.set == nil || obs.set.deleted && len(obs.ours) == 0 {
		writes.Create = nil // whoever deletes slices of a set that is gone is right
	}
	if writes.Empty() {
		return false, nil
	}
	client := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace)
	for _, slice := range writes.Create {
		created, err := client.Create(ctx, slice, metav1.CreateOptions{})
		switch {
		case children.TerminatingNamespace(err):
			return false, errNamespaceEnds
		case err != nil:
			return true, c.failed("creating", slice, err)
		}
		c.wroteSlice(obs, operationCreate, created)
	}
	for _, slice := range writes.Update {
		updated, err := client.Update(ctx, slice, metav1.UpdateOptions{})
		switch {
		case apierrors.IsNotFound(err): // its deletion is about to be seen
			continue
		case err != nil:
			return true, c.failed("updating", slice, err)
		}
		c.wroteSlice(obs, operationUpdate, updated)
	}
	c.observeDelay(obs)
	return true, c.deleteSlices(ctx, obs, writes.Delete)
}

// refused returns whether somebody does not want slices of ours, and not only now.
func refused(err error) bool { return children.RefusalOf(err).Reason != children.FailedCreate }

func (c *Controller) failed(what string, slice *discoveryv1.EndpointSlice, err error) error {
	writesTotal.WithLabelValues(operationFailed).Inc()
	if refused(err) {
		c.accepted.Store(false)
	}
	return fmt.Errorf("%s an endpointslice of service %s/%s: %w", what, slice.Namespace, slice.Labels[discoveryv1.LabelServiceName], err)
}

func (c *Controller) wroteSlice(obs *observed, operation string, slice *discoveryv1.EndpointSlice) {
	c.memory.wrote(obs.key, slice.Name, versionOf(slice))
	if len(slice.Endpoints) > 0 {
		c.accepted.Store(true)
	}
	c.wrote(obs, resourceSlices, operation, slice.ResourceVersion)
}

func (c *Controller) wrote(obs *observed, resource, operation, version string) {
	writesTotal.WithLabelValues(operation).Inc()
	c.consistency.Wrote(obs.key, resource, version)
}

func (c *Controller) deleteSlices(ctx context.Context, obs *observed, ours []*discoveryv1.EndpointSlice) error {
	client := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace)
	for _, slice := range ours {
		c.memory.wrote(obs.key, slice.Name, goneVersion)
		err := client.Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID}})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another slice of the name
			continue
		case err != nil:
			return c.failed("deleting", slice, err)
		}
		writesTotal.WithLabelValues(operationDelete).Inc()
		c.consistency.Deleted(obs.key, slice.UID)
	}
	return nil
}

// take makes the controllers of the cluster find no pods for the Service any more. All addresses are in our slices.
func (c *Controller) take(ctx context.Context, obs *observed) error {
	steps := children.SetKeys("/spec/selector", map[string]string{jobsetv1alpha2.EndpointsKey: jobsetv1alpha2.ServiceEndpointsController})
	return c.patchService(ctx, obs, operationTake, steps)
}

// leave lets the controllers of the cluster find pods for the Service again.
func (c *Controller) leave(ctx context.Context, obs *observed) error {
	if obs.service == nil || !switched(obs.service) {
		return nil
	}
	return c.patchService(ctx, obs, operationLeave, []children.Operation{children.Remove(children.Key("/spec/selector", jobsetv1alpha2.EndpointsKey))})
}

func (c *Controller) patchService(ctx context.Context, obs *observed, operation string, steps []children.Operation) error {
	body, err := json.Marshal(append([]children.Operation{children.Set("/metadata/resourceVersion", obs.service.ResourceVersion)}, steps...))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	patched, err := c.Kube.CoreV1().Services(obs.key.Namespace).Patch(ctx, obs.service.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // its deletion is about to be seen
	case err != nil:
		writesTotal.WithLabelValues(operationFailed).Inc()
		return fmt.Errorf("patching the selector of service %s/%s: %w", obs.key.Namespace, obs.service.Name, err)
	}
	c.wrote(obs, resourceServices, operation, patched.ResourceVersion)
	return nil
}

// back gives a Service back to the controllers of the cluster: the selector first, and our slices when the cluster has written all addresses, or has had the time.
func (c *Controller) back(ctx context.Context, obs *observed) (time.Duration, error) {
	if switched(obs.service) {
		c.memory.left(obs.key, obs.now)
		return leavingPoll, c.leave(ctx, obs)
	}
	since := c.memory.leftSince(obs.key, obs.now)
	if c.Clock.Since(since) < leavingTimeout {
		filled, err := c.filled(ctx, obs)
		if err != nil || !filled {
			return leavingPoll, err
		}
	}
	return 0, c.deleteSlices(ctx, obs, obs.ours)
}

// filled returns whether slices of the cluster have the addresses of all pods.
func (c *Controller) filled(ctx context.Context, obs *observed) (bool, error) {
	selector := labels.Set{discoveryv1.LabelServiceName: obs.service.Name}.String()
	list, err := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, fmt.Errorf("listing the endpointslices of service %s/%s: %w", obs.key.Namespace, obs.service.Name, err)
	}
	known := sets.New[string]()
	for i := range list.Items {
		if list.Items[i].Labels[discoveryv1.LabelManagedBy] == slices.ManagedBy {
			continue
		}
		for _, e := range list.Items[i].Endpoints {
			known.Insert(e.Addresses...)
		}
	}
	families := sets.New(obs.service.Spec.IPFamilies...)
	for i := range obs.pods {
		for _, a := range obs.pods[i].Addresses {
			if family := corev1.IPFamily(slices.FamilyOf(a)); families.Has(family) && !known.Has(a.String()) {
				return false, nil
			}
		}
	}
	return true, nil
}
