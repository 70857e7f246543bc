// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// describe returns the run of an object without details; nil if it has none. The code of a kind must not be able to end a server: an object
// for which it panics has no run.
func (r *Recorder) describe(ctx context.Context, resource schema.GroupResource, object runtime.Object) (run *api.Run) {
	accessor, err := meta.Accessor(object)
	if err != nil || accessor.GetUID() == "" || unreadable.Is(accessor) {
		return nil // an update is about to create the object, or it cannot be read: lists of the store have placeholders
	}
	defer func() {
		if cause := recover(); cause != nil {
			run = nil
			lostTotal.WithLabelValues(lostDescribe).Inc()
			klog.FromContext(ctx).Error(panicked(cause), "The run of an object cannot be determined and is not recorded", "resource", resource,
				"object", klog.KObj(accessor), "uid", accessor.GetUID(), "stack", string(debug.Stack()))
		}
	}()
	run = r.Describe[resource](object, r.Clock.Now())
	if run == nil || run.Object.UID == "" || run.Object.Execution < 1 {
		return nil
	}
	return run
}

func panicked(cause any) error { return fmt.Errorf("panic: %v", cause) }

// complete adds what Describe leaves out. A run whose details cannot be made has none: nothing is kept that was not redacted.
func (r *Recorder) complete(ctx context.Context, run *api.Run, object runtime.Object) {
	run.CreationTimestamp = metav1.NewTime(r.Clock.Now())
	details, version, err := r.details(run, object)
	if err != nil {
		run.Labels, run.Annotations = nil, nil
		klog.FromContext(ctx).Error(err, "A run is recorded without its details", "run", klog.KObj(run), "uid", run.Object.UID)
		return
	}
	run.Details, run.Object.APIVersion = details, version
}

func (r *Recorder) details(run *api.Run, object runtime.Object) (details *api.RunDetails, version string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			details, version, err = nil, "", panicked(cause)
		}
	}()
	data, err := runtime.Encode(r.Encoder, object)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the object: %w", err)
	}
	var parts struct {
		APIVersion string         `json:"apiVersion"`
		Spec       map[string]any `json:"spec"`
		Status     map[string]any `json:"status"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, "", fmt.Errorf("reading the encoded object: %w", err)
	}
	r.Redact(run, parts.Spec, parts.Status)
	details = &api.RunDetails{}
	if details.Spec.Raw, err = encodePart(parts.Spec); err != nil {
		return nil, "", err
	}
	if details.Status.Raw, err = encodePart(parts.Status); err != nil {
		return nil, "", err
	}
	return details, parts.APIVersion, nil
}

// encodePart returns nothing for a part that an object does not have.
func encodePart(part map[string]any) ([]byte, error) {
	if len(part) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encoding the redacted object: %w", err)
	}
	return data, nil
}

// isStored returns whether the archive is known to have the run with this end or a later one.
func (r *Recorder) isStored(run *api.Run) bool {
	end, known := r.stored.get(archive.KeyOf(run))
	return known && !run.EndTime.After(end)
}
