// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// fieldManager owns the conditions that are applied; each type has a manager of its own, so that applying one removes no other.
const fieldManager = "jobset-controller"

// ApplyHold does what was decided about the Workload that holds quota for a sequence; nil if it is to be created. Every write is about
// this version of it, so that doing it twice does no harm. The error is an UndoneError while another party undoes the write each time.
func (w *Watch) ApplyHold(ctx context.Context, sequence metav1.Object, workload *plan.Workload, p plan.HoldPlan, now metav1.Time) error {
	switch {
	case p.Create != nil:
		return w.create(ctx, sequence, p.Create)
	case p.Delete:
		return w.delete(ctx, sequence, workload)
	case p.Empty():
		return nil
	}
	what, value := contestOf(p)
	return w.guarded(sequence, workload, what, value, func() error { return w.change(ctx, sequence, workload, p, now) })
}

// change makes the change of a Workload that was decided.
func (w *Watch) change(ctx context.Context, sequence metav1.Object, workload *plan.Workload, p plan.HoldPlan, now metav1.Time) error {
	switch {
	case p.Patch != nil:
		return w.patch(ctx, workload, fieldsOf(p.Patch, sequence.GetName()))
	case p.Release != nil:
		for i := range p.Release {
			if p.Release[i].LastTransitionTime.IsZero() {
				p.Release[i].LastTransitionTime = now
			}
		}
		return w.patch(ctx, workload, map[string]any{"status": map[string]any{"admission": nil, "conditions": p.Release}}, "status")
	case p.Apply != nil:
		if p.Apply.Type == plan.ConditionFinished {
			w.guard.Ending(sequence, workload)
		}
		return w.apply(ctx, workload, *p.Apply, now)
	case p.Unhold:
		var others []string
		for _, f := range workload.Finalizers {
			if f != plan.InUseFinalizer {
				others = append(others, f)
			}
		}
		return w.patch(ctx, workload, map[string]any{"metadata": map[string]any{"finalizers": others}})
	}
	return nil
}

// create creates a Workload, unless another party deletes it each time. One of the same owner that exists is about to
// be shown by the cache.
func (w *Watch) create(ctx context.Context, sequence metav1.Object, workload *plan.Workload) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(workload)
	if err != nil {
		return fmt.Errorf("creating Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	unstructured.RemoveNestedField(object, "status")
	if err := w.guard.Creating(workload, workload); err != nil {
		return err
	}
	client := w.Dynamic.Resource(workloads).Namespace(workload.Namespace)
	_, err = client.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := client.Get(ctx, workload.Name, metav1.GetOptions{})
		switch owner := workload.OwnerUID(); {
		case getErr != nil:
			err = fmt.Errorf("%w: %w", err, getErr)
		case owner != "" && uidOfController(existing) == owner:
			return nil
		default:
			err = fmt.Errorf("%w, and belongs to another object", err)
		}
	}
	if err != nil {
		return fmt.Errorf("creating Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	w.guard.Created(workload, workload)
	w.guard.Replaced(sequence, workload)
	return nil
}

// uidOfController returns the UID of the controller of an object; "" if it has none.
func uidOfController(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// fieldsOf returns what is to be merged into a Workload.
func fieldsOf(p *plan.HoldPatch, sequence string) map[string]any {
	spec := map[string]any{}
	if p.PodSets != nil {
		spec["podSets"] = p.PodSets
	}
	if p.QueueName != nil {
		spec["queueName"] = *p.QueueName
	}
	if p.Priority != nil {
		spec["priority"], spec["priorityClassRef"] = *p.Priority, p.PriorityClassRef
	}
	fields := map[string]any{"spec": spec}
	if p.Activation != plan.Keep {
		spec["active"] = p.Activation == plan.Activate
		fields["metadata"] = deactivatedBy(sequence, p.Activation)
	}
	return fields
}

// apply sets one condition.
func (w *Watch) apply(ctx context.Context, workload *plan.Workload, c metav1.Condition, now metav1.Time) error {
	c.LastTransitionTime = now
	body, err := json.Marshal(map[string]any{
		"apiVersion": GroupVersion.String(), "kind": "Workload",
		"metadata": map[string]any{"name": workload.Name, "namespace": workload.Namespace, "uid": workload.UID,
			"resourceVersion": workload.ResourceVersion},
		"status": map[string]any{"conditions": []metav1.Condition{c}},
	})
	if err != nil {
		return err
	}
	_, err = w.Dynamic.Resource(workloads).Namespace(workload.Namespace).Patch(ctx, workload.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager + "-" + c.Type, Force: ptr.To(true)}, "status")
	if err != nil && !Gone(err) {
		return fmt.Errorf("setting the condition %s of Workload %s/%s: %w", c.Type, workload.Namespace, workload.Name, err)
	}
	return nil
}

// delete deletes a Workload that is of no use, so that another one can be created, unless another party creates it again or makes it
// useless each time. One that this controller itself has finished is replaced when its sequence is retried.
func (w *Watch) delete(ctx context.Context, sequence metav1.Object, workload *plan.Workload) error {
	if err := w.guard.Removing(sequence, workload); err != nil {
		return err
	}
	useless := thePodSets
	if workload.Is(plan.ConditionFinished) {
		useless = conditionNamed(plan.ConditionFinished)
	}
	if err := w.guard.Replacing(sequence, workload, useless); err != nil {
		return err
	}
	w.guard.Deleting(workload.Namespace, workload.Name)
	err := w.Dynamic.Resource(workloads).Namespace(workload.Namespace).Delete(ctx, workload.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &workload.UID, ResourceVersion: &workload.ResourceVersion},
	})
	if err != nil && !Gone(err) {
		return fmt.Errorf("deleting Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	w.guard.Removed(sequence, workload)
	return nil
}

// Priority returns the value of a WorkloadPriorityClass.
func (w *Watch) Priority(ctx context.Context, name string) (int32, error) {
	class := &plan.WorkloadPriorityClass{}
	err := w.get(ctx, "workloadpriorityclasses", name, class)
	return class.Value, err
}

// Flavors returns the ResourceFlavors that the admission of a Workload names. Those that do not exist are missing.
func (w *Watch) Flavors(ctx context.Context, workload *plan.Workload) (map[string]*plan.ResourceFlavor, error) {
	found := map[string]*plan.ResourceFlavor{}
	for _, name := range plan.FlavorsOf(workload) {
		flavor := &plan.ResourceFlavor{}
		switch err := w.get(ctx, "resourceflavors", name, flavor); {
		case err == nil:
			found[name] = flavor
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return found, nil
}

// get reads an object of the cluster.
func (w *Watch) get(ctx context.Context, resource, name string, into any) error {
	read, err := w.Dynamic.Resource(GroupVersion.WithResource(resource)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", resource, name, err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, into)
}
