// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// phaseDeleted is shown in place of the phase of a set that no longer exists.
const phaseDeleted = "Deleted"

// follower prints the rows that change. It keeps the rows that were printed, so that changes of what is not shown print nothing.
type follower struct {
	*options
	print func(rows []Row) error
	seen  map[types.UID]Row
}

func newFollower(o *options, t cli.Terminal, print func(rows [][]string) error) *follower {
	return &follower{options: o, seen: map[types.UID]Row{}, print: func(rows []Row) error {
		now := time.Now()
		cells := make([][]string, 0, len(rows))
		for i := range rows {
			cells = append(cells, o.cells(&rows[i], t, now))
		}
		return print(cells)
	}}
}

// follow prints the objects, and then each change, until the context ends. Each kind has a watch of its own.
func (o *options) follow(ctx context.Context, f *cli.Factory, from []*source) error {
	terminal, printer := f.Terminal(), &cli.Rows{Columns: columns(o.allNamespaces)}
	var one sync.Mutex
	print := func(rows [][]string) error {
		one.Lock()
		defer one.Unlock()
		return terminal.Lines(f.Out, printer.Lines(terminal, rows)...)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range from {
		group.Go(func() error {
			err := newFollower(o, terminal, print).run(ctx, s)
			if o.passes(f, s, err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// run lists, and watches from there. A watch that the server ends goes on from its last change. When that is too old, the sets are
// listed again, and only what differs is printed.
func (w *follower) run(ctx context.Context, from *source) error {
	version, err := w.list(ctx, from)
	if err != nil {
		return err
	}
	return cli.Repeat(ctx, from.kind.Names[1], func(ctx context.Context) (progress bool, err error) {
		if version == "" {
			if version, err = w.list(ctx, from); err != nil {
				return false, err
			}
		}
		before := version
		version, err = from.watch(ctx, version, w.see)
		progress = version != before
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
		}
		return progress, err
	})
}

// list prints the rows of a list that were not printed before: at first all of them.
func (w *follower) list(ctx context.Context, from *source) (string, error) {
	var changed []Row
	present := map[types.UID]bool{}
	version, err := from.list(ctx, func(r Row) {
		present[r.uid] = true
		if w.note(&r) {
			changed = append(changed, r)
		}
	})
	if err != nil {
		return "", err
	}
	for uid, row := range w.seen {
		if !present[uid] {
			delete(w.seen, uid)
			row.Phase, row.Reason = phaseDeleted, ""
			changed = append(changed, row)
		}
	}
	sortRows(changed, w.sortBy)
	return version, w.show(changed)
}

// note records a row, and returns whether it is to be printed: it differs from what was printed of the set, and the set is among
// those that the user wants to see, or was.
func (w *follower) note(r *Row) bool {
	last, known := w.seen[r.uid]
	if !w.chosen(r) {
		delete(w.seen, r.uid)
		return known
	}
	w.seen[r.uid] = *r
	last.resourceVersion = r.resourceVersion // it changes with all that is not shown, too
	return !known || last != *r
}

// see prints the row of a change.
func (w *follower) see(e event) error {
	if e.kind == watch.Deleted {
		if _, known := w.seen[e.row.uid]; !known {
			return nil
		}
		delete(w.seen, e.row.uid)
		e.row.Phase, e.row.Reason = phaseDeleted, ""
		return w.show([]Row{e.row})
	}
	if w.note(&e.row) {
		return w.show([]Row{e.row})
	}
	return nil
}

func (w *follower) show(rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	if err := w.print(rows); err != nil {
		return cli.OutputError{Err: err}
	}
	return nil
}
