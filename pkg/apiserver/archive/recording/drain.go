// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// drainInterval is the time between two looks at the outbox when nothing is removed here. Other servers may have left entries and ended.
	drainInterval = time.Minute
	// waitInterval is the time between two looks at the outbox while an object of an entry still exists.
	waitInterval = 5 * time.Second
	// maxWait is how long an entry waits for its object to be gone. A removal takes milliseconds, and its request a minute at most.
	maxWait = 10 * time.Minute
	// recountInterval is the time between two counts of the bytes in the outbox.
	recountInterval = 10 * time.Minute
)

// drainer stores what is in the outbox. It belongs to one goroutine.
type drainer struct {
	*Recorder
	// aside are entries that are not tried before some time, because they cannot be read or the archive refuses them.
	aside map[outbox.Ref]*setAside
	// waiting are entries whose object exists, with when that was seen first. The clock of the server that wrote them may be wrong.
	waiting map[outbox.Ref]time.Time
	// failed is a run that could not be stored when the archive did not answer last; nil if it answered.
	failed *archive.Ended
	// counted is when the outbox was counted last.
	counted time.Time
	// oldest is when the oldest entry that can be read was written, as this round found it.
	oldest time.Time
}

// drain stores what is in the outbox until the context ends.
func (r *Recorder) drain(ctx context.Context) {
	if !r.awaitReady(ctx) {
		return
	}
	d := r.newDrainer()
	for backoff := newBackoff(); ; {
		delay, early := drainInterval, r.removed
		switch err := d.once(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			// A removal does not make the archive answer earlier.
			delay, early = backoff.Step(), nil
			klog.FromContext(ctx).Error(err, "Runs stay in the outbox; trying again later", "entries", r.Outbox.Usage().Entries, "after", delay)
		default:
			backoff = newBackoff()
			if len(d.waiting) > 0 {
				delay = waitInterval
			}
		}
		if !r.wait(ctx, delay, early) {
			return
		}
	}
}

func (r *Recorder) newDrainer() *drainer {
	return &drainer{Recorder: r, aside: map[outbox.Ref]*setAside{}, waiting: map[outbox.Ref]time.Time{}}
}

// once tries all entries, oldest first.
func (d *drainer) once(ctx context.Context) error {
	if err := d.recount(ctx); err != nil {
		return err
	}
	if d.failed != nil { // the index of a full outbox is large
		if _, err := d.missing(ctx, []archive.Ended{*d.failed}); err != nil {
			return err
		}
		d.failed = nil
	}
	refs, err := d.index(ctx)
	if err != nil {
		return err
	}
	d.oldest = time.Time{}
	for len(refs) > 0 {
		size := min(len(refs), maxBatch)
		if err := d.try(ctx, refs[:size]); err != nil {
			return err
		}
		refs = refs[size:]
	}
	if len(d.aside)+len(d.waiting) == 0 {
		outbox.ShowOldest(0)
	}
	return nil
}

// recount counts what the outbox has at the start and now and then.
func (d *drainer) recount(ctx context.Context) error {
	if !d.counted.IsZero() && d.Clock.Since(d.counted) < recountInterval {
		return nil
	}
	if err := d.Outbox.Recount(ctx); err != nil {
		return err
	}
	d.counted = d.Clock.Now()
	return nil
}

// index returns the entries that are to be tried, and forgets what was known of entries that are gone.
func (d *drainer) index(ctx context.Context) ([]outbox.Ref, error) {
	all, err := d.Outbox.Index(ctx)
	if err != nil {
		return nil, err
	}
	aside, waiting := map[outbox.Ref]*setAside{}, map[outbox.Ref]time.Time{}
	refs := all[:0]
	for _, ref := range all {
		if since, ok := d.waiting[ref]; ok {
			waiting[ref] = since
		}
		if entry := d.aside[ref]; entry != nil {
			aside[ref] = entry
			if d.Clock.Now().Before(entry.until) {
				continue
			}
		}
		refs = append(refs, ref)
	}
	d.aside, d.waiting = aside, waiting
	return refs, nil
}

// loaded is an entry that can be stored.
type loaded struct {
	stored outbox.Stored
	entry  *outbox.Entry
}

// try stores some entries and removes them from the outbox.
func (d *drainer) try(ctx context.Context, refs []outbox.Ref) error {
	stored, err := d.load(ctx, refs)
	if err != nil {
		return err
	}
	d.at(entryLoaded)
	for len(stored) > 0 {
		var runs batch
		var entries []loaded
		for len(stored) > 0 && !runs.full() {
			if entry := d.decode(ctx, stored[0]); entry != nil && d.counts(ctx, stored[0], entry) {
				runs.add(entry.Run)
				entries = append(entries, loaded{stored[0], entry})
			}
			stored = stored[1:]
		}
		if err := d.store(ctx, runs, entries); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (d *drainer) load(ctx context.Context, refs []outbox.Ref) ([]outbox.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return d.Outbox.Load(ctx, refs)
}

// decode reads an entry. One that cannot be read is kept: a newer version of the server may have written it.
func (d *drainer) decode(ctx context.Context, stored outbox.Stored) *outbox.Entry {
	entry, err := d.Outbox.Decode(ctx, stored)
	if err != nil {
		d.setAside(ctx, stored.Ref, err)
		return nil
	}
	if d.oldest.IsZero() {
		d.oldest = entry.Written
		outbox.ShowOldest(d.Clock.Since(entry.Written))
	}
	return entry
}

// store stores the runs of entries, and removes the entries from the outbox.
func (d *drainer) store(ctx context.Context, runs batch, entries []loaded) error {
	missing, err := d.missingRemovals(ctx, entries)
	if err == nil {
		wanted := batch{}
		for i := range runs.runs {
			if run := &runs.runs[i]; !entries[i].entry.Removal || missing[archive.KeyOf(run)] {
				wanted.add(run)
			}
		}
		var refused refusals
		if refused, err = d.put(ctx, wanted.runs); err == nil {
			d.at(runStored)
			return d.remove(ctx, entries, refused)
		}
		d.setRefusedAside(ctx, entries, refused)
	}
	if len(entries) > 0 {
		failed := endedOf(entries[0].entry.Run)
		d.failed = &failed
	}
	return err
}

// missingRemovals returns which runs that ended with the removal of their objects the archive does not have. If it has another end of such
// a run, that one is right: the entry is from an attempt to remove the object before it ended.
func (d *drainer) missingRemovals(ctx context.Context, entries []loaded) (map[archive.Key]bool, error) {
	var asked []archive.Ended
	for _, one := range entries {
		if one.entry.Removal {
			asked = append(asked, endedOf(one.entry.Run))
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	return d.missing(ctx, asked)
}

// remove removes entries whose runs are stored. An entry that was written again stays.
func (d *drainer) remove(ctx context.Context, entries []loaded, refused refusals) error {
	d.setRefusedAside(ctx, entries, refused)
	for _, one := range entries {
		if refused[archive.KeyOf(one.entry.Run)] != nil {
			continue
		}
		if _, err := d.Outbox.Remove(ctx, one.stored); err != nil {
			return err
		}
		d.at(entryRemoved)
	}
	return nil
}
