// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// phaseDeleted is shown in place of the phase of a set that no longer exists.
const phaseDeleted = "Deleted"

const (
	// mostFailures is after how many watches in a row that end with an error the command ends.
	mostFailures = 5
	// pause is the time between two watches.
	pause = time.Second
)

// follower prints the rows that change. It keeps the rows that were printed, so that changes of what is not shown print nothing.
type follower struct {
	*options
	print func(rows []Row) error
	seen  map[types.UID]Row
	pause time.Duration
}

func newFollower(o *options, print func(rows [][]string) error, t cli.Terminal) *follower {
	return &follower{options: o, seen: map[types.UID]Row{}, pause: pause, print: func(rows []Row) error {
		now := time.Now()
		cells := make([][]string, 0, len(rows))
		for i := range rows {
			cells = append(cells, rows[i].cells(t, o.allNamespaces, now))
		}
		return print(cells)
	}}
}

// follow prints the sets, and then each change, until the context ends.
func (o *options) follow(ctx context.Context, f *cli.Factory, from *source) error {
	terminal, printer := f.Terminal(), &linePrinter{columns: columns(o.allNamespaces)}
	return newFollower(o, func(rows [][]string) error { return terminal.Lines(f.Out, printer.lines(terminal, rows)...) }, terminal).run(ctx, from)
}

// run lists, and watches from there. A watch that the server ends goes on from its last change. When that is too old, the sets are
// listed again, and only what differs is printed.
func (w *follower) run(ctx context.Context, from *source) error {
	version, err := w.list(ctx, from)
	if err != nil {
		return err
	}
	failures := 0
	for ctx.Err() == nil {
		if err = nil; version == "" {
			version, err = w.list(ctx, from)
		}
		before := version
		if err == nil {
			version, err = from.watch(ctx, version, w.see)
		}
		var broken outputError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &broken):
			return broken.error
		case err == nil, version != before:
			failures = 0
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), cli.IsNotServed(err):
			return err
		default:
			if failures++; failures >= mostFailures {
				return fmt.Errorf("watching jobsets: %w", err)
			}
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
		}
		wait(ctx, w.pause)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
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
		return outputError{err}
	}
	return nil
}

// outputError is that of writing, which ends the command, unlike one of a server.
type outputError struct{ error }

// linePrinter prints rows under each other, however late they come: columns only become wider.
type linePrinter struct {
	columns []cli.Column
	widest  []string
}

// lines returns those of the rows, after the header if they are the first.
func (p *linePrinter) lines(t cli.Terminal, rows [][]string) []string {
	first := p.widest == nil
	if first {
		p.widest = make([]string, len(p.columns))
	}
	for _, row := range rows {
		for i, cell := range row {
			if cli.Columns(cell) > cli.Columns(p.widest[i]) {
				p.widest[i] = cell
			}
		}
	}
	lines := t.Table(p.columns, append([][]string{p.widest}, rows...))
	if first {
		return append(lines[:1:1], lines[2:]...)
	}
	return lines[2:]
}
