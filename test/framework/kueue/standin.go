// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	queueLabel, jobUIDLabel = group + "/queue-name", group + "/job-uid"
	finalizer               = group + "/resource-in-use"
	// period is how often everything is looked at.
	period = 100 * time.Millisecond
)

// queued are the kinds whose objects get a Workload.
var queued = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
}

// Standin decides in one namespace as Kueue would, with room for any Workload unless it holds them back.
type Standin struct {
	Client    dynamic.Interface
	Namespace string

	mu sync.Mutex
	// hold is why nothing is admitted; empty if everything is.
	hold string
	// flavor is the ResourceFlavor that is assigned.
	flavor string
	// evictions are the reasons for Workloads that are to be evicted, by name.
	evictions map[string]string
}

// Hold admits nothing from now on, for a reason that Workloads show.
func (s *Standin) Hold(why string) { s.set(func() { s.hold = why }) }

// Admit admits everything from now on, with a flavor if it is named.
func (s *Standin) Admit(flavor string) { s.set(func() { s.hold, s.flavor = "", flavor }) }

// Evict takes the quota of a Workload back once, and holds back everything until Admit is called.
func (s *Standin) Evict(workload, reason string) {
	s.set(func() {
		if s.evictions == nil {
			s.evictions = map[string]string{}
		}
		s.evictions[workload], s.hold = reason, "no room"
	})
}

func (s *Standin) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Run decides until the context ends. What it cannot do it tries again, and logs.
func (s *Standin) Run(ctx context.Context, logf func(format string, args ...any)) {
	for ctx.Err() == nil {
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			logf("stand-in for Kueue: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(period):
		}
	}
}

// pass looks at everything once.
func (s *Standin) pass(ctx context.Context) error {
	var errs []error
	owners := map[types.UID]*owner{}
	for _, r := range queued {
		list, err := s.in(r).List(ctx, metav1.ListOptions{LabelSelector: queueLabel})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range list.Items {
			owners[list.Items[i].GetUID()] = &owner{resource: r, Unstructured: &list.Items[i]}
		}
	}
	list, err := s.in(Workloads).List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	known := map[types.UID]bool{}
	for i := range list.Items {
		w := &list.Items[i]
		ref := metav1.GetControllerOfNoCopy(w)
		if ref == nil {
			continue
		}
		known[ref.UID] = true
		errs = append(errs, ignore(s.decide(ctx, w)))
		if ref.Kind != "SequentialJob" { // whose own controller does this
			errs = append(errs, ignore(s.follow(ctx, w, owners[ref.UID])))
		}
	}
	for uid, o := range owners {
		if !known[uid] && o.GetDeletionTimestamp() == nil && !o.finished() {
			errs = append(errs, ignore(s.queue(ctx, o)))
		}
	}
	return errors.Join(errs...)
}

func (s *Standin) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.Client.Resource(r).Namespace(s.Namespace)
}

// ignore leaves to the next pass what has changed meanwhile.
func ignore(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// decide is what the core of Kueue does about a Workload, whoever owns it.
func (s *Standin) decide(ctx context.Context, w *unstructured.Unstructured) error {
	s.mu.Lock()
	hold, flavor, eviction := s.hold, s.flavor, s.evictions[w.GetName()]
	s.mu.Unlock()
	active, set, _ := unstructured.NestedBool(w.Object, "spec", "active")
	reserved := is(w, "QuotaReserved")
	if set && !active {
		eviction = "Deactivated"
	}
	switch {
	case is(w, "Finished") || w.GetDeletionTimestamp() != nil:
		return nil
	case eviction != "":
		return s.evict(ctx, w, eviction)
	case reserved:
		return nil
	case hold != "":
		if c := find(w, "QuotaReserved"); c != nil && c["message"] == hold {
			return nil
		}
		return s.conditions(ctx, w, nil, condition("QuotaReserved", false, "Pending", hold))
	}
	return s.conditions(ctx, w, admission(w, flavor), condition("QuotaReserved", true, "QuotaReserved", "Quota reserved in ClusterQueue all"),
		condition("Admitted", true, "Admitted", "The workload is admitted"), condition("Evicted", false, "QuotaReserved", "Quota reserved"))
}

// evict takes the quota of a Workload back, unless that was done already.
func (s *Standin) evict(ctx context.Context, w *unstructured.Unstructured, reason string) error {
	if !is(w, "Evicted") {
		err := s.conditions(ctx, w, nil, condition("Evicted", true, reason, "The Workload was evicted by the test"))
		if err != nil {
			return err
		}
	}
	s.set(func() { delete(s.evictions, w.GetName()) })
	return nil
}

// admission gives every pod set all it asks for, of one flavor.
func admission(w *unstructured.Unstructured, flavor string) map[string]any {
	sets, _, _ := unstructured.NestedSlice(w.Object, "spec", "podSets")
	var assignments []any
	for _, set := range sets {
		a := map[string]any{"name": set.(map[string]any)["name"]}
		if flavor != "" {
			a["flavors"] = map[string]any{"cpu": flavor}
		}
		assignments = append(assignments, a)
	}
	return map[string]any{"clusterQueue": "all", "podSetAssignments": assignments}
}

// queue makes the Workload of an object.
func (s *Standin) queue(ctx context.Context, o *owner) error {
	if o.active() {
		return nil
	}
	w := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Workloads.GroupVersion().String(), "kind": "Workload",
		"metadata": map[string]any{
			"name":   fmt.Sprintf("%s-%s-%.5s", o.noun(), o.GetName(), o.GetUID()),
			"labels": map[string]any{jobUIDLabel: string(o.GetUID())}, "finalizers": []any{finalizer},
			"ownerReferences": []any{map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "name": o.GetName(), "uid": string(o.GetUID()),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{"queueName": o.GetLabels()[queueLabel], "podSets": o.podSets()},
	}}
	_, err := s.in(Workloads).Create(ctx, w, metav1.CreateOptions{})
	return err
}

// follow is what Kueue does about the object of a Workload that it made.
func (s *Standin) follow(ctx context.Context, w *unstructured.Unstructured, o *owner) error {
	switch {
	case o == nil || o.GetDeletionTimestamp() != nil || w.GetDeletionTimestamp() != nil || o.finished():
		return s.finish(ctx, w, o)
	case is(w, "Evicted") || !is(w, "Admitted"):
		if err := s.suspend(ctx, o, true); err != nil || !is(w, "QuotaReserved") || o.active() || !o.suspended() {
			return err
		}
		return s.conditions(ctx, w, none, condition("QuotaReserved", false, "Pending", "The Workload was evicted"),
			condition("Admitted", false, "NoReservation", "The workload has no reservation"))
	}
	return s.suspend(ctx, o, false)
}

// finish ends the Workload of an object that is gone or has ended.
func (s *Standin) finish(ctx context.Context, w *unstructured.Unstructured, o *owner) error {
	if o != nil && o.finished() && !is(w, "Finished") {
		return s.conditions(ctx, w, nil, condition("Finished", true, "Succeeded", "The job has ended"))
	}
	if len(w.GetFinalizers()) == 0 {
		return nil
	}
	return merge(ctx, s.in(Workloads), w, `{"metadata":{"finalizers":null}}`)
}

func (s *Standin) suspend(ctx context.Context, o *owner, suspend bool) error {
	if o.suspended() == suspend {
		return nil
	}
	return merge(ctx, s.in(o.resource), o.Unstructured, fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspend))
}
