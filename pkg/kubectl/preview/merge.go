// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// applyManager is the field manager of `kubectl apply --server-side`.
const applyManager = "kubectl"

// patch is a change to an object of the cluster.
type patch struct {
	kind    types.PatchType
	body    []byte
	manager string
	// force takes fields over from other managers. Only applies have it.
	force bool
}

// patchOf returns the patch with which `kubectl apply` would change the object of the cluster to match the manifest, and the object that
// results before the server adds its defaults. The manager is the field manager of a server-side apply: an object that it has applied is
// applied by the server, which then removes the fields that the manifest no longer has. All other objects are merged here as kubectl does
// it: with the manifest that was applied last, if there is one. The example is a value of the Go type of the object.
func patchOf(live, manifest *unstructured.Unstructured, manager string, example any) (patch, *unstructured.Unstructured, error) {
	current, err := live.MarshalJSON()
	if err != nil {
		return patch{}, nil, fmt.Errorf("encoding the object of the cluster: %w", err)
	}
	modified, err := manifest.MarshalJSON()
	if err != nil {
		return patch{}, nil, fmt.Errorf("encoding the object of the manifest: %w", err)
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	if !json.Valid(original) {
		original = nil
	}
	change, next, err := merge(original, modified, current, example)
	if err != nil {
		return patch{}, nil, err
	}
	if original == nil && appliedBy(live, manager) {
		return patch{kind: types.ApplyPatchType, body: modified, manager: manager}, next, nil
	}
	return patch{kind: types.MergePatchType, body: change, manager: dryRun.FieldManager}, next, nil
}

// appliedBy returns whether the manager has applied the object with a server-side apply.
func appliedBy(object *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
}

// merge returns the three-way merge as a JSON merge patch, which custom resources take too, and its result. Lists are merged by the
// keys of the Go type. A manifest with lists or objects that the type does not have is merged without keys; the server names
// the unknown field.
func merge(original, modified, current []byte, example any) (change []byte, next *unstructured.Unstructured, err error) {
	result, err := mergeByKeys(original, modified, current, example)
	if err == nil {
		change, err = jsonmergepatch.CreateThreeWayJSONMergePatch(current, result, current)
	} else if change, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current); err == nil {
		result = modified
	}
	if err != nil {
		return nil, nil, fmt.Errorf("merging the manifest with the object of the cluster: %w", err)
	}
	next = &unstructured.Unstructured{}
	return change, next, next.UnmarshalJSON(result)
}

func mergeByKeys(original, modified, current []byte, example any) ([]byte, error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(example)
	if err != nil {
		return nil, err
	}
	change, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, schema, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, change, schema)
}
