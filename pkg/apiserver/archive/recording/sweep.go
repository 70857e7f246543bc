// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	sweepInterval = 10 * time.Minute
	// sweepPage is how many runs the archive is asked for at once.
	sweepPage = 500
)

// sweepAlways looks at the start and from time to time for objects that have ended and are not recorded.
func (r *Recorder) sweepAlways(ctx context.Context) {
	if !r.awaitReady(ctx) {
		return
	}
	for backoff := newBackoff(); ; {
		delay := wait.Jitter(sweepInterval, jitter)
		if err := r.sweep(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			delay = backoff.Step()
			klog.FromContext(ctx).Error(err, "Objects that have ended cannot be compared with the archive; trying again later")
		} else {
			backoff = newBackoff()
		}
		if !r.wait(ctx, delay, nil) {
			return
		}
	}
}

// sweep records what the archive does not have of all objects that have ended. It needs little memory: a list from the watch cache shares
// its objects.
func (r *Recorder) sweep(ctx context.Context) error {
	for resource := range r.wrapped() {
		if err := r.sweepResource(ctx, resource); err != nil {
			return fmt.Errorf("comparing %s with the archive: %w", resource, err)
		}
	}
	return nil
}

func (r *Recorder) sweepResource(ctx context.Context, resource schema.GroupResource) error {
	predicate := storage.Everything
	predicate.Limit = sweepPage
	for {
		_, list := r.New(resource)
		err := r.storeOf(resource).GetList(ctx, "/"+resource.Group+"/"+resource.Resource+"/", storage.ListOptions{
			ResourceVersion: startVersion(predicate.Continue), Recursive: true, Predicate: predicate,
		}, list)
		if err != nil {
			return err
		}
		if err := r.sweepList(ctx, resource, list); err != nil {
			return err
		}
		accessor, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if predicate.Continue = accessor.GetContinue(); predicate.Continue == "" {
			return nil
		}
	}
}

// startVersion makes the first page come from the watch cache as it is, which then answers with all objects. What ended just now is
// queued.
func startVersion(continuation string) string {
	if continuation == "" {
		return "0"
	}
	return ""
}

func (r *Recorder) sweepList(ctx context.Context, resource schema.GroupResource, list runtime.Object) error {
	page := sweepable{resource: resource}
	err := meta.EachListItem(list, func(object runtime.Object) error {
		run := r.describe(ctx, resource, object)
		if run == nil || run.State == "" || r.isStored(run) {
			return nil
		}
		page.runs, page.objects = append(page.runs, run), append(page.objects, object)
		if len(page.runs) < sweepPage {
			return nil
		}
		err := r.sweepPage(ctx, page)
		page.runs, page.objects = nil, nil
		return err
	})
	if err != nil {
		return err
	}
	return r.sweepPage(ctx, page)
}

// sweepable are runs that have ended, and their objects.
type sweepable struct {
	resource schema.GroupResource
	runs     []*api.Run
	objects  []runtime.Object
}

func (r *Recorder) sweepPage(ctx context.Context, page sweepable) error {
	if len(page.runs) == 0 {
		return nil
	}
	asked := make([]archive.Ended, 0, len(page.runs))
	for _, run := range page.runs {
		asked = append(asked, endedOf(run))
	}
	missing, err := r.missing(ctx, asked)
	if err != nil {
		return err
	}
	var runs batch
	for i, run := range page.runs {
		if !missing[archive.KeyOf(run)] {
			continue
		}
		r.complete(ctx, run, page.objects[i])
		if runs.add(run); runs.full() {
			if err := r.putSwept(ctx, runs); err != nil {
				return err
			}
			runs = batch{}
		}
	}
	return r.putSwept(ctx, runs)
}

// putSwept stores runs that a sweep has found. Runs that the archive refuses are found again by the next one, and keep no others out.
func (r *Recorder) putSwept(ctx context.Context, runs batch) error {
	_, err := r.put(ctx, runs.runs)
	if errors.Is(err, errRefused) {
		klog.FromContext(ctx).Error(err, "Runs that have ended are not recorded; trying again with the next sweep", "runs", len(runs.runs))
		return nil
	}
	return err
}
