// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// execution is an execution that has ended, with a copy of its object.
type execution struct {
	run    *api.Run
	object runtime.Object
}

// execution returns the last execution of an object if it has ended and is not known to be stored; nil otherwise.
func (r *Recorder) execution(ctx context.Context, resource schema.GroupResource, object runtime.Object) *execution {
	run := r.describe(ctx, resource, object)
	if run == nil || run.State == "" || r.isStored(run) {
		return nil
	}
	return &execution{run, object.DeepCopyObject()}
}

// replacing leaves an execution in the outbox if an update replaces it: the object has another one or goes on. The run has ended even if
// the update fails.
func (r *Recorder) replacing(ctx context.Context, resource schema.GroupResource, key string, before *execution, next runtime.Object) {
	if before == nil {
		return
	}
	after := r.describe(ctx, resource, next)
	if after != nil && after.State != "" && archive.KeyOf(after) == archive.KeyOf(before.run) {
		return
	}
	r.complete(ctx, before.run, before.object)
	if r.leave(ctx, outbox.Entry{Resource: resource, ObjectKey: key, Run: before.run}) {
		r.wake()
	}
}

// removing leaves the run of an object in the outbox that is about to be removed, and returns whether it did. An entry that was left for an
// earlier version of the object is replaced in any case.
func (r *Recorder) removing(ctx context.Context, resource schema.GroupResource, key string, object runtime.Object, again bool) bool {
	run := r.describe(ctx, resource, object)
	if run == nil {
		return false
	}
	removal := run.State == ""
	if removal {
		run.State = api.RunDeleted
		if run.EndUser == "" {
			run.EndUser = r.deleter(ctx, object)
		}
	} else if !again && r.isStored(run) {
		return false
	}
	r.complete(ctx, run, object)
	return r.leave(ctx, outbox.Entry{Resource: resource, ObjectKey: key, Removal: removal, Run: run})
}

// leave writes an entry, and returns whether it did. The write goes on when the client gives up, because the removal may have begun. If it
// fails, the run is lost and the object goes its way.
func (r *Recorder) leave(ctx context.Context, entry outbox.Entry) bool {
	r.at(beforeEntry)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxTimeout)
	defer cancel()
	entry.Written = r.Clock.Now()
	err := r.Outbox.Put(ctx, entry)
	switch {
	case err == nil:
		r.at(entryWritten)
		return true
	case errors.Is(err, outbox.ErrFull):
		lostTotal.WithLabelValues(lostOutboxFull).Inc()
		if r.fullLog.passes() {
			klog.FromContext(ctx).Error(err, "Runs are not recorded, because the outbox is full. Make the archive available again",
				"entries", r.Outbox.Usage().Entries, "bytes", r.Outbox.Usage().Bytes, "run", klog.KObj(entry.Run))
		}
	default:
		lostTotal.WithLabelValues(lostOutboxFailed).Inc()
		klog.FromContext(ctx).Error(err, "A run is not recorded, because the outbox does not take it", "run", klog.KObj(entry.Run),
			"uid", entry.Run.Object.UID)
	}
	return false
}

// wake lets the outbox be drained at once.
func (r *Recorder) wake() {
	select {
	case r.removed <- struct{}{}:
	default:
	}
}
