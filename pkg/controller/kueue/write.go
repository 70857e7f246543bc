// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// SetActive changes spec.active of this version of a Workload, and notes the sequence for which it was deactivated. One that is gone is
// no error. The error is an UndoneError while another party undoes the change each time.
func (w *Watch) SetActive(ctx context.Context, workload *plan.Workload, sequence metav1.Object, activation plan.Activation) error {
	if activation == plan.Keep {
		return nil
	}
	active := activation == plan.Activate
	return w.guarded(sequence, workload, theActivation, strconv.FormatBool(active), func() error {
		return w.patch(ctx, workload, map[string]any{
			"metadata": deactivatedBy(sequence.GetName(), activation), "spec": map[string]any{"active": active},
		})
	})
}

// deactivatedBy returns the metadata of a Workload that is deactivated for a sequence, or activated.
func deactivatedBy(sequence string, activation plan.Activation) map[string]any {
	var by any // null removes the annotation
	if activation == plan.Deactivate {
		by = sequence
	}
	return map[string]any{"annotations": map[string]any{batchv1alpha1.DeactivatedByKey: by}}
}

// patch merges fields into this version of a Workload.
func (w *Watch) patch(ctx context.Context, workload *plan.Workload, fields map[string]any, subresources ...string) error {
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = workload.UID, workload.ResourceVersion
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = w.Dynamic.Resource(workloads).Namespace(workload.Namespace).
		Patch(ctx, workload.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	if err != nil && !Gone(err) {
		return fmt.Errorf("patching Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	return nil
}

// Gone returns whether an error says that an object does not exist. A server that does not know its API answers every
// request with the same status, which says nothing about the object.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
