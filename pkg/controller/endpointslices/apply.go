// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	endpointslices "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// errNamespaceEnds means that nothing can be created any more.
var errNamespaceEnds = errors.New("the namespace is being terminated")

// planned returns what is to be written. What was refused is not tried again yet.
func (c *Syncer) planned(obs *observed) endpointslices.Writes {
	pods, left := obs.pods, obs.verdict == byCluster && !switched(obs.service)
	if left {
		pods = known(pods, obs.managed) // the cluster writes the others
	}
	writes := endpointslices.Plan(obs.key.Name, obs.service, pods, obs.managed)
	// Whoever deletes slices of a set that is gone is right.
	if left || obs.set == nil || obs.set.deleted && len(obs.managed) == 0 || c.bars(obs, operationCreate) {
		writes.Create = nil
	}
	if c.bars(obs, operationUpdate) {
		writes.Update = nil
	}
	return writes
}

// write writes the slices of a set, and returns whether anything was to be written. A refused request does not keep others from being made.
func (c *Syncer) write(ctx context.Context, obs *observed) (wrote bool, err error) {
	writes := c.planned(obs)
	if writes.Empty() {
		return false, nil
	}
	err = c.create(ctx, obs, writes.Create)
	if err != nil && !refused(err) {
		return !errors.Is(err, errNamespaceEnds), err
	}
	errs := []error{err}
	for _, slice := range writes.Update {
		if err := c.updateOne(ctx, obs, slice); refused(err) {
			errs = append(errs, err)
		} else if err != nil {
			return true, err
		}
	}
	c.observeDelay(obs)
	return true, errors.Join(append(errs, c.deleteSlices(ctx, obs, writes.Delete))...)
}

// createAll creates slices. When one is refused, the others are like it.
func (c *Syncer) createAll(ctx context.Context, obs *observed, wanted []*discoveryv1.EndpointSlice) error {
	for _, slice := range wanted {
		created, err := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace).Create(ctx, slice, metav1.CreateOptions{})
		err = c.noteAnswer(obs, operationCreate, err)
		switch {
		case children.TerminatingNamespace(err):
			return errNamespaceEnds
		case err != nil:
			return c.failed(ctx, obs, operationCreate, slice, err)
		}
		c.wroteSlice(obs, operationCreate, created)
	}
	return nil
}

// known returns those pods that slices list.
func known(pods []endpointslices.Pod, managed []*discoveryv1.EndpointSlice) (listed []endpointslices.Pod) {
	listing := sets.New[types.UID]()
	for _, slice := range managed {
		for i := range slice.Endpoints {
			if ref := slice.Endpoints[i].TargetRef; ref != nil {
				listing.Insert(ref.UID)
			}
		}
	}
	for i := range pods {
		if listing.Has(pods[i].UID) {
			listed = append(listed, pods[i])
		}
	}
	return listed
}

// update updates a slice, unless it is gone.
func (c *Syncer) update(ctx context.Context, obs *observed, slice *discoveryv1.EndpointSlice) error {
	updated, err := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	err = c.noteAnswer(obs, operationUpdate, err)
	switch {
	case apierrors.IsNotFound(err) && !refused(err): // its deletion is about to be seen
		return nil
	case err != nil:
		return c.failed(ctx, obs, operationUpdate, slice, err)
	}
	c.wroteSlice(obs, operationUpdate, updated)
	return nil
}

// doing are operations as errors name them.
var doing = map[string]string{operationCreate: "creating", operationUpdate: "updating", operationDelete: "deleting"}

// failed returns the error of a request about a slice. A refusal is remembered.
func (c *Syncer) failed(ctx context.Context, obs *observed, operation string, slice *discoveryv1.EndpointSlice, err error) error {
	writesTotal.WithLabelValues(operationFailed).Inc()
	err = fmt.Errorf("%s an endpointslice of service %s/%s: %w", doing[operation], slice.Namespace, slice.Labels[discoveryv1.LabelServiceName],
		err)
	if refused(err) {
		c.denied(ctx, obs, operation, err)
	}
	return err
}

func (c *Syncer) wroteSlice(obs *observed, operation string, slice *discoveryv1.EndpointSlice) {
	c.memory.wrote(obs.key, slice.Name, versionOf(slice))
	obs.written = slice
	if len(slice.Endpoints) > 0 {
		c.accepted.Store(true)
	}
	c.wrote(obs, resourceSlices, operation, slice.ResourceVersion)
}

func (c *Syncer) wrote(obs *observed, resource, operation, version string) {
	writesTotal.WithLabelValues(operation).Inc()
	c.memory.allowed(obs, operation)
	c.consistency.Wrote(obs.key, resource, version)
}

// deleteSlices deletes our slices. Those that must not be deleted are emptied: they may list addresses that other pods have by now.
func (c *Syncer) deleteSlices(ctx context.Context, obs *observed, managed []*discoveryv1.EndpointSlice) error {
	client := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace)
	var errs []error
	for _, slice := range managed {
		var err error
		if !c.bars(obs, operationDelete) {
			c.memory.wrote(obs.key, slice.Name, goneVersion)
			err = c.noteAnswer(obs, operationDelete, client.Delete(ctx, slice.Name,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID}}))
			if err != nil {
				c.memory.kept(obs.key, slice)
			}
			switch {
			case refused(err):
				errs = append(errs, c.failed(ctx, obs, operationDelete, slice, err))
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				return c.failed(ctx, obs, operationDelete, slice, err)
			default:
				writesTotal.WithLabelValues(operationDelete).Inc()
				c.memory.allowed(obs, operationDelete)
				c.consistency.Deleted(obs.key, slice.UID)
				continue
			}
		}
		if len(slice.Endpoints) == 0 || c.bars(obs, operationUpdate) {
			continue
		}
		empty := *slice
		empty.Endpoints = []discoveryv1.Endpoint{}
		if err := c.update(ctx, obs, &empty); refused(err) {
			errs = append(errs, err)
		} else if err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// take makes the controllers of the cluster find no pods for the Service any more. All addresses are in our slices.
// Whoever has refused an update before is asked first: the next address would be refused again.
func (c *Syncer) take(ctx context.Context, obs *observed) error {
	if d := c.memory.denialOf(obs.key, obs.set.id()); d.has(operationUpdate) {
		if slice := cmp.Or(obs.written, firstOf(obs.managed)); slice != nil {
			if err := c.update(ctx, obs, slice); err != nil {
				return err
			}
		}
	}
	return c.switchOver(ctx, obs)
}

func firstOf(managed []*discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	if len(managed) == 0 {
		return nil
	}
	return managed[0]
}

// leave lets the controllers of the cluster find pods for the Service again.
func (c *Syncer) leave(ctx context.Context, obs *observed) error {
	if obs.service == nil || !switched(obs.service) || c.bars(obs, operationLeave) {
		return nil
	}
	selector := maps.Clone(obs.service.Spec.Selector)
	delete(selector, jobsetv1alpha2.EndpointsKey)
	c.services.Reverting(obs.service, theSelector)
	return c.patchService(ctx, obs, operationLeave, selector)
}

// patchService stores another selector, as a whole: a key that is removed must exist, and the answer to a request
// without it is no conflict.
func (c *Syncer) patchService(ctx context.Context, obs *observed, operation string, selector map[string]string) error {
	body, err := json.Marshal([]children.Operation{children.Set("/metadata/resourceVersion", obs.service.ResourceVersion),
		children.Set("/spec/selector", selector)})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	patched, err := c.Kube.CoreV1().Services(obs.key.Namespace).Patch(ctx, obs.service.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	err = c.noteAnswer(obs, operation, err)
	switch {
	case apierrors.IsNotFound(err) && !refused(err):
		return nil // its deletion is about to be seen
	case err != nil:
		writesTotal.WithLabelValues(operationFailed).Inc()
		err = fmt.Errorf("patching the selector of service %s/%s: %w", obs.key.Namespace, obs.service.Name, err)
		if refused(err) {
			c.denied(ctx, obs, operation, err)
		}
		return err
	}
	c.limiter.forget(obs.key)
	if operation == operationLeave {
		c.memory.leaving.Note(obs.key, c.Clock.Now())
	}
	c.wrote(obs, resourceServices, operation, patched.ResourceVersion)
	return nil
}

// back gives a Service back to the controllers of the cluster: the selector first, and our slices when the cluster has
// written all addresses, or has had the time.
func (c *Syncer) back(ctx context.Context, obs *observed) (time.Duration, error) {
	if switched(obs.service) {
		if obs.turn > 0 {
			return obs.turn, nil
		}
		return 0, c.leaveOnly(ctx, obs)
	}
	if since := c.Clock.Since(children.Since(c.memory.leaving, obs.key, true, obs.now)); since < leavingTimeout {
		filled, err := c.filled(ctx, obs)
		if err != nil || !filled {
			// It takes longer the longer it has taken. Whoever must not list slices waits for the end.
			return min(max(since, leavingPoll), leavingTimeout-since), ignoreRefused(err)
		}
	}
	return 0, ignoreRefused(c.deleteSlices(ctx, obs, obs.managed))
}

// ignoreRefused returns an error that is no refusal. What is refused is tried again when its denial ends.
func ignoreRefused(err error) error {
	if refused(err) {
		return nil
	}
	return err
}

// filled returns whether slices of the cluster have the addresses of all pods.
func (c *Syncer) filled(ctx context.Context, obs *observed) (bool, error) {
	selector := labels.Set{discoveryv1.LabelServiceName: obs.service.Name}.String()
	list, err := c.Kube.DiscoveryV1().EndpointSlices(obs.key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, fmt.Errorf("listing the endpointslices of service %s/%s: %w", obs.key.Namespace, obs.service.Name, err)
	}
	known := sets.New[string]()
	for i := range list.Items {
		if list.Items[i].Labels[discoveryv1.LabelManagedBy] == endpointslices.ManagedBy {
			continue
		}
		for _, e := range list.Items[i].Endpoints {
			known.Insert(e.Addresses...)
		}
	}
	ipFamilies := sets.New(obs.service.Spec.IPFamilies...)
	for i := range obs.pods {
		for _, a := range obs.pods[i].Addresses {
			if ipFamily := corev1.IPFamily(endpointslices.AddressTypeOf(a)); ipFamilies.Has(ipFamily) && !known.Has(a.String()) {
				return false, nil
			}
		}
	}
	return true, nil
}
