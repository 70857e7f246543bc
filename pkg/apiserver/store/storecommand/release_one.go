// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// maxTries is how often one object is released when others change it.
const maxTries = 5

// errDeleting: an object that is being deleted ends, with and without an owner.
var errDeleting = errors.New("it is being deleted, which cannot be undone")

// one takes the references to the owners off an object. One that is gone, or that has none any more, is no error.
func (r *release) one(ctx context.Context, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) error {
	client := r.metadata.Resource(resource).Namespace(object.Namespace)
	for try := 1; ; try++ {
		references := r.owners.referencesOf(object)
		switch {
		case len(references) == 0:
			return nil
		case object.DeletionTimestamp != nil:
			return errDeleting
		case r.dryRun.client():
			return nil
		}
		body, err := patch(object, references)
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, object.Name, types.JSONPatchType, body, metav1.PatchOptions{DryRun: r.dryRun.options()})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !changed(err) || try == maxTries {
			return err
		}
		uid := object.UID
		if object, err = client.Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
			return utilerrors.FilterOut(err, apierrors.IsNotFound)
		}
		if object.UID != uid {
			return nil
		}
	}
}

// changed returns whether the object has changed since it was read: a test of the patch has failed, or another client wrote at the same
// time.
func changed(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch removes references of this very object, the last first so that the indexes hold. Each is tested before it is removed.
func patch(object *metav1.PartialObjectMetadata, references []int) ([]byte, error) {
	operations := []operation{{"test", "/metadata/uid", object.UID}}
	for _, i := range slices.Backward(references) {
		path := fmt.Sprintf("/metadata/ownerReferences/%d", i)
		operations = append(operations, operation{"test", path + "/uid", object.OwnerReferences[i].UID}, operation{Op: "remove", Path: path})
	}
	return json.Marshal(operations)
}
