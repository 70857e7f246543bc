// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// setAside is an entry that is tried again later.
type setAside struct {
	tries int
	until time.Time
}

// setAside keeps an entry from being tried for a while, which is longer each time.
func (d *drainer) setAside(ctx context.Context, ref outbox.Ref, cause error) {
	entry := d.aside[ref]
	if entry == nil {
		entry = &setAside{}
		d.aside[ref] = entry
		recordedTotal.WithLabelValues(resultSetAside).Inc()
		klog.FromContext(ctx).Error(cause, "An entry of the outbox is set aside, and is tried again from time to time", "key", ref.Key)
	}
	entry.tries++
	entry.until = d.Clock.Now().Add(min(maxWait, time.Duration(entry.tries)*maxBackoff))
}

// setRefusedAside sets the entries aside whose runs the archive refuses.
func (d *drainer) setRefusedAside(ctx context.Context, entries []loaded, refused refusals) {
	for _, one := range entries {
		if err := refused[archive.KeyOf(one.entry.Run)]; err != nil {
			d.setAside(ctx, one.stored.Ref, err)
		}
	}
}

// counts returns whether the run of an entry has to be stored now. A run that ends with the removal of its object does not count while the
// object exists, and never if the removal does not happen.
func (d *drainer) counts(ctx context.Context, stored outbox.Stored, entry *outbox.Entry) bool {
	if !entry.Removal {
		return true
	}
	exists, err := d.exists(ctx, entry)
	if err != nil {
		d.setAside(ctx, stored.Ref, err)
		return false
	}
	if !exists {
		return true
	}
	since, known := d.waiting[stored.Ref]
	if !known {
		d.waiting[stored.Ref] = d.Clock.Now()
		return false
	}
	if d.Clock.Since(since) >= maxWait {
		if removed, err := d.Outbox.Remove(ctx, stored); err == nil && removed {
			delete(d.waiting, stored.Ref)
			recordedTotal.WithLabelValues(resultDropped).Inc()
			klog.FromContext(ctx).Info("An entry of the outbox is dropped, because its object was not removed", "key", stored.Key)
		}
	}
	return false
}

// exists returns whether the object of an entry exists.
func (d *drainer) exists(ctx context.Context, entry *outbox.Entry) (bool, error) {
	if d.storeOf(entry.Resource) == nil {
		return false, fmt.Errorf("this server does not record the runs of %s, so that it cannot see whether the object is gone", entry.Resource)
	}
	object, err := d.get(ctx, entry.Resource, entry.ObjectKey, "")
	if err != nil {
		return false, err
	}
	return uidOf(object) == entry.Run.Object.UID, nil
}
