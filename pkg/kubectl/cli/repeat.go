// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// mostFailures is after how many failures in a row Repeat ends.
	mostFailures = 5
	// repeatPause is the time between two calls of Repeat.
	repeatPause = time.Second
)

// OutputError is one of writing, which ends a command, unlike one of a server.
type OutputError struct{ Err error }

// Error implements error.
func (e OutputError) Error() string { return e.Err.Error() }

// Unwrap returns the error of writing.
func (e OutputError) Unwrap() error { return e.Err }

// Repeat calls watch again and again, until the context ends, which is no error. A call that fails without progress five times in a row
// ends it, and so does an error that stays: the output is gone, or access is denied. What names the objects that are watched.
func Repeat(ctx context.Context, what string, watch func(context.Context) (progress bool, err error)) error {
	return repeat(ctx, what, repeatPause, watch)
}

func repeat(ctx context.Context, what string, between time.Duration, watch func(context.Context) (progress bool, err error)) error {
	failures := 0
	for {
		progress, err := watch(ctx)
		var output OutputError
		switch {
		case errors.Is(err, errDone):
			return nil
		case errors.As(err, &output):
			return output.Err
		case ctx.Err() != nil:
			return nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), err != nil && IsNotServed(err):
			return err
		case err == nil, progress:
			failures = 0
		default:
			if failures++; failures >= mostFailures {
				return fmt.Errorf("watching %s: %w", what, err)
			}
		}
		if !Pause(ctx, between) {
			return nil
		}
	}
}

// Rows prints rows of one table under each other, however late they come: columns only become wider.
type Rows struct {
	// Columns are the columns of the table.
	Columns []Column

	widest []string
}

// Lines returns the lines of the rows, after the header if they are the first.
func (p *Rows) Lines(t Terminal, rows [][]string) []string {
	first := p.widest == nil
	if first {
		p.widest = make([]string, len(p.Columns))
	}
	for _, row := range rows {
		for i, cell := range row {
			if Columns(cell) > Columns(p.widest[i]) {
				p.widest[i] = cell
			}
		}
	}
	l := t.layout(p.Columns, append([][]string{p.widest}, rows...))
	var lines []string
	if first {
		lines = append(lines, l.header())
	}
	for _, row := range rows {
		lines = append(lines, l.row(row, plainBranch)...)
	}
	return lines
}
