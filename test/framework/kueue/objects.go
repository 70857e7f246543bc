// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// owner is a Job or a JobSet in a queue.
type owner struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

func (o *owner) noun() string { return strings.ToLower(o.GetKind()) }

func (o *owner) suspended() bool {
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	return suspended
}

// active returns whether pods run.
func (o *owner) active() bool {
	if n, _, _ := unstructured.NestedInt64(o.Object, "status", "active"); n > 0 {
		return true
	}
	jobs, _, _ := unstructured.NestedSlice(o.Object, "status", "replicatedJobsStatus")
	return slices.ContainsFunc(jobs, func(job any) bool {
		n, _, _ := unstructured.NestedInt64(job.(map[string]any), "active")
		return n > 0
	})
}

func (o *owner) finished() bool {
	return slices.ContainsFunc([]string{"Complete", "Completed", "Failed"}, func(end string) bool { return is(o.Unstructured, end) })
}

// podSets are the pod sets of the Workload.
func (o *owner) podSets() []any {
	if o.GetKind() == "Job" {
		template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
		parallelism, found, _ := unstructured.NestedInt64(o.Object, "spec", "parallelism")
		if !found {
			parallelism = 1
		}
		return []any{map[string]any{"name": "main", "count": parallelism, "template": template}}
	}
	var sets []any
	jobs, _, _ := unstructured.NestedSlice(o.Object, "spec", "replicatedJobs")
	for _, job := range jobs {
		fields := job.(map[string]any)
		template, _, _ := unstructured.NestedMap(fields, "template", "spec", "template")
		sets = append(sets, map[string]any{"name": fields["name"], "count": fields["replicas"], "template": template})
	}
	return sets
}

// none removes the admission.
var none = map[string]any{}

// conditions sets conditions of a Workload, and its admission if one is given.
func (s *Standin) conditions(ctx context.Context, w *unstructured.Unstructured, admission map[string]any, set ...map[string]any) error {
	next := w.DeepCopy()
	all, _, _ := unstructured.NestedSlice(next.Object, "status", "conditions")
	for _, c := range set {
		all = slices.DeleteFunc(all, func(old any) bool { return old.(map[string]any)["type"] == c["type"] })
		all = append(all, any(c))
	}
	if err := unstructured.SetNestedSlice(next.Object, all, "status", "conditions"); err != nil {
		return err
	}
	switch {
	case admission == nil:
	case len(admission) == 0:
		unstructured.RemoveNestedField(next.Object, "status", "admission")
	default:
		if err := unstructured.SetNestedMap(next.Object, admission, "status", "admission"); err != nil {
			return err
		}
	}
	_, err := s.in(Workloads).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

func condition(conditionType string, status bool, reason, message string) map[string]any {
	text := "False"
	if status {
		text = "True"
	}
	return map[string]any{
		"type": conditionType, "status": text, "reason": reason, "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
}

// find returns a condition of an object; nil if it has none of that type.
func find(object *unstructured.Unstructured, conditionType string) map[string]any {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range all {
		if fields, ok := c.(map[string]any); ok && fields["type"] == conditionType {
			return fields
		}
	}
	return nil
}

// is returns whether a condition of an object is True.
func is(object *unstructured.Unstructured, conditionType string) bool {
	c := find(object, conditionType)
	return c != nil && c["status"] == "True"
}

// merge changes this version of an object.
func merge(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured, patch string) error {
	var fields map[string]any
	if err := json.Unmarshal([]byte(patch), &fields); err != nil {
		return err
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = object.GetResourceVersion()
	fields["metadata"] = metadata
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	return err
}
