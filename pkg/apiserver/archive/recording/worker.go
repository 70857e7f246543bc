// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
)

// ended is an object that has ended. It is read again when its run is recorded, so that the queue needs little memory. If it is gone by
// then, or is retried, the outbox has the run.
type ended struct {
	resource schema.GroupResource
	key      string
	uid      types.UID
	// version is the version that has ended.
	version string
}

// updated queues an object if it has ended.
func (r *Recorder) updated(ctx context.Context, resource schema.GroupResource, key string, object runtime.Object) {
	run := r.describe(ctx, resource, object)
	if run == nil || run.State == "" || r.isStored(run) {
		return
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	select {
	case r.queue <- ended{resource, key, accessor.GetUID(), accessor.GetResourceVersion()}:
	default: // the sweep finds it
	}
}

// work records what is queued. When the context ends, it records what is queued by then within a deadline.
func (r *Recorder) work(ctx context.Context) {
	if !r.awaitReady(ctx) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			r.finish(ctx)
			return
		case first := <-r.queue:
			if left := r.recordUntilStored(ctx, r.take(first)); len(left) > 0 {
				r.finish(ctx, left...)
				return
			}
		}
	}
}

// finish records what is queued, and what is left of a batch. What the archive does not take now is found by the sweep of another server.
func (r *Recorder) finish(ctx context.Context, left ...ended) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	for {
		if len(left) == 0 {
			select {
			case first := <-r.queue:
				left = r.take(first)
			default:
				return
			}
		}
		var err error
		if left, err = r.record(ctx, left); err != nil {
			klog.FromContext(ctx).Error(err, "The server ends before all runs are recorded; the next start records them", "queued", len(r.queue))
			return
		}
	}
}

// take returns what is queued, up to a batch.
func (r *Recorder) take(first ended) []ended {
	batch := []ended{first}
	for len(batch) < maxBatch {
		select {
		case next := <-r.queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// recordUntilStored tries until the archive answers. It returns what is left when the context ends.
func (r *Recorder) recordUntilStored(ctx context.Context, batch []ended) []ended {
	for backoff := newBackoff(); ; {
		left, err := r.record(ctx, batch)
		if err == nil && len(left) == 0 {
			return nil
		}
		batch = left
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return batch
		}
		klog.FromContext(ctx).Error(err, "Runs wait, because the archive does not take them", "queued", len(r.queue)+len(batch))
		if !r.wait(ctx, backoff.Step(), nil) {
			return batch
		}
	}
}

// record records objects that have ended, and returns the rest. The sweep takes care of runs that the archive refuses, and of objects that
// cannot be read.
func (r *Recorder) record(ctx context.Context, queued []ended) ([]ended, error) {
	var runs batch
	for i, item := range queued {
		run, err := r.read(ctx, item)
		switch {
		case ctx.Err() != nil:
			return queued, ctx.Err()
		case err != nil:
			klog.FromContext(ctx).Error(err, "An object that has ended cannot be read; its run is recorded later", "key", item.key)
		case run != nil:
			runs.add(run)
		}
		if runs.full() {
			return r.putQueued(ctx, queued, i+1, runs)
		}
	}
	return r.putQueued(ctx, queued, len(queued), runs)
}

// putQueued stores the runs of the first objects of a queue, and returns what is left of the queue.
func (r *Recorder) putQueued(ctx context.Context, queued []ended, first int, runs batch) ([]ended, error) {
	refused, err := r.put(ctx, runs.runs)
	if err == nil {
		return queued[first:], nil
	}
	refusedUIDs := sets.New[types.UID]()
	for key := range refused {
		refusedUIDs.Insert(key.Object)
	}
	return slices.DeleteFunc(slices.Clone(queued), func(item ended) bool { return refusedUIDs.Has(item.uid) }), err
}

// read returns the run of an object as it is now; nil if it does not have to be recorded any more.
func (r *Recorder) read(ctx context.Context, item ended) (*api.Run, error) {
	object, err := r.get(ctx, item.resource, item.key, item.version)
	if err != nil {
		return nil, err
	}
	if uidOf(object) != item.uid {
		return nil, nil
	}
	run := r.describe(ctx, item.resource, object)
	if run == nil || run.State == "" || r.isStored(run) {
		return nil, nil
	}
	r.complete(ctx, run, object)
	return run, nil
}

// get reads an object that is at least as new as a version; an empty version means the newest. The object is empty if there is none.
func (r *Recorder) get(ctx context.Context, resource schema.GroupResource, key, version string) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	object, _ := r.New(resource)
	err := r.storeOf(resource).Get(ctx, key, storage.GetOptions{IgnoreNotFound: true, ResourceVersion: version}, object)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", resource, key, err)
	}
	return object, nil
}
