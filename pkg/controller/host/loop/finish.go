// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// Outcome is what is left to do of a sync once the children are written.
type Outcome[O Object] struct {
	// Owner is the object that the decision was made on.
	Owner O
	// Due is when the object is synced again although nothing happens to it.
	Due queue.Due
	// Writes are reported first, whatever becomes of the status.
	Writes []Report
	// Next is the object with its next status; nil if the stored one is right.
	Next O
	// NotStored is called with why Next was not stored; it may be nil.
	NotStored func(ctx context.Context, err error)
	// Stored is called with the object as it is stored once Next is, or with Owner if there is no Next. What must not be
	// remembered of a status that is not stored is noted here. Events are reported although it returns an error. It may be nil.
	Stored func(stored O) error
	// Events are reported once the status is stored.
	Events []Report
	// Then is called after everything else has succeeded, while the time of the sync is not over; it may be nil.
	Then func(ctx context.Context, stored O) error
}

// Finish does what is left to do of a sync. Events about a status follow its write: what is announced holds. The status
// is stored even if a child could not be written, because it says what was observed and not what was done.
func (l *Loop[O, S, P, R]) Finish(ctx context.Context, out Outcome[O]) error {
	l.Report(ctx, out.Owner, out.Writes...)
	stored, found, err := l.store(ctx, out)
	if err != nil || !found {
		return err
	}
	if out.Stored != nil {
		err = out.Stored(stored)
	}
	l.Report(ctx, out.Owner, out.Events...)
	if err != nil || out.Then == nil || ctx.Err() != nil {
		return err
	}
	return out.Then(ctx, stored)
}

// store stores the next status, if there is one. It returns the object as it is stored now, and whether it is there.
func (l *Loop[O, S, P, R]) store(ctx context.Context, out Outcome[O]) (stored O, found bool, err error) {
	var none O
	if out.Next == none {
		return out.Owner, true, nil
	}
	client := l.Client(out.Owner.GetNamespace())
	stored, found, err = children.StoreStatus(ctx, l.Host, client, l.Resource, l.noun(), out.Owner, out.Next)
	if children.IsUndone(err) {
		l.Report(ctx, out.Owner, Report{Event: plan.Event{Type: corev1.EventTypeWarning, Reason: ReasonStatusUndoneByOthers, Note: err.Error()}})
	}
	if err != nil && out.NotStored != nil {
		out.NotStored(ctx, err)
	}
	return stored, found, err
}

// ReasonStatusUndoneByOthers is the reason of an event about a status that is not stored, because another party changes it back each time.
// No condition can say so.
const ReasonStatusUndoneByOthers = "StatusUndoneByOthers"

// noun names the kind in errors.
func (l *Loop[O, S, P, R]) noun() string { return strings.ToLower(l.GVK.Kind) }

// Delete deletes an object that has outlived its time, with its children in the foreground, unless it was changed.
func (l *Loop[O, S, P, R]) Delete(ctx context.Context, stored O) error {
	if err := children.DeleteOwner(ctx, l.Host, l.Client(stored.GetNamespace()), l.Resource, stored); err != nil {
		return fmt.Errorf("deleting %s %s after its time to live: %w", l.noun(), cache.MetaObjectToName(stored), err)
	}
	klog.FromContext(ctx).V(3).Info("Deleted the " + l.GVK.Kind + " after its time to live")
	return nil
}
