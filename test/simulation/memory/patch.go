// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/json"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// patched returns an object with the patch of a request.
func (r *Request) patched(live *unstructured.Unstructured) (*unstructured.Unstructured, int) {
	body := r.Body
	if r.Verb == "apply" {
		body = appliedConditions(live, body)
	}
	before, err := json.Marshal(live)
	if err != nil {
		return nil, http.StatusInternalServerError
	}
	after := body
	switch {
	case r.Verb == "update":
	case r.Type == types.JSONPatchType:
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = steps.Apply(before)
		}
	default:
		after, err = jsonpatch.MergePatch(before, body)
	}
	next := &unstructured.Unstructured{}
	if err != nil || json.Unmarshal(after, &next.Object) != nil {
		return nil, http.StatusBadRequest
	}
	if next.GetUID() != live.GetUID() || next.GetResourceVersion() != live.GetResourceVersion() {
		return nil, changed
	}
	kept, from := "status", live
	if r.Subresource == "status" { // only the status changes
		kept, from, next = "status", next, live.DeepCopy()
	}
	if status, found := from.Object[kept]; found {
		next.Object[kept] = status
	} else {
		delete(next.Object, kept)
	}
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	return next, 0
}

// appliedConditions returns a merge patch that sets the conditions of an apply patch, and leaves the others.
func appliedConditions(live *unstructured.Unstructured, body []byte) []byte {
	var patch map[string]any
	if json.Unmarshal(body, &patch) != nil {
		return body
	}
	applied, _, _ := unstructured.NestedSlice(patch, "status", "conditions")
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range applied {
		at := -1
		for i := range all {
			if all[i].(map[string]any)["type"] == c.(map[string]any)["type"] {
				at = i
			}
		}
		if at < 0 {
			all = append(all, c)
		} else {
			all[at] = c
		}
	}
	if err := unstructured.SetNestedSlice(patch, all, "status", "conditions"); err != nil {
		return body
	}
	delete(patch, "apiVersion")
	delete(patch, "kind")
	out, _ := json.Marshal(patch)
	return out
}

func equal(a, b *unstructured.Unstructured) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
