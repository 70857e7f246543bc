// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// redrawEvery is how often a view is read again.
	redrawEvery = 2 * time.Second
	// readShare is how many times as long as a reading took is waited before the next: a view of a large set is read less often.
	readShare = 10
)

// Frame is what is drawn of an object at one time.
type Frame struct {
	// Lines are the lines of the view.
	Lines []string
	// Key differs from that of another frame if more than ages differs.
	Key string
}

// Redraw draws a view again and again, until the context ends or the object is gone: on a terminal over the last frame, elsewhere below it
// with the time, and only when something has changed. The first reading must succeed.
func (f *Factory) Redraw(ctx context.Context, name string, draw func(context.Context, Terminal) (Frame, error)) error {
	return (&redrawer{out: f.Out, terminal: f.Terminal, name: name, draw: draw, every: redrawEvery}).run(ctx)
}

type redrawer struct {
	out      io.Writer
	terminal func() Terminal
	name     string
	draw     func(context.Context, Terminal) (Frame, error)
	every    time.Duration

	key string
}

func (r *redrawer) run(ctx context.Context) error {
	first := true
	return repeat(ctx, r.name, 0, func(ctx context.Context) (bool, error) {
		begin := time.Now()
		terminal := r.terminal()
		frame, err := r.draw(ctx, terminal)
		switch {
		case err != nil && first:
			return false, OutputError{err} // ends at once
		case apierrors.IsNotFound(err) && !IsNotServed(err):
			if err = terminal.Lines(r.out, r.name+" was deleted."); err == nil {
				err = errDone
			}
			return false, OutputError{err}
		case err == nil:
			if err = r.show(terminal, frame, first); err != nil {
				return false, OutputError{err}
			}
		}
		first = false
		Pause(ctx, max(r.every, readShare*time.Since(begin)))
		return false, err
	})
}

// Sequences of terminals.
const (
	clearScreen = "\x1b[2J\x1b[H"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// show draws a frame.
func (r *redrawer) show(t Terminal, frame Frame, first bool) error {
	if t.Height == 0 {
		if frame.Key == r.key && !first {
			return nil
		}
		lines := append([]string{time.Now().UTC().Format(time.RFC3339)}, frame.Lines...)
		if !first {
			lines = append([]string{""}, lines...)
		}
		r.key = frame.Key
		return t.Lines(r.out, lines...)
	}
	lines := frame.Lines
	if room := max(t.Height-2, 1); len(lines) > room {
		lines = append(lines[:room:room], fmt.Sprintf("%s below", Count(len(lines)-room, "more line")))
	}
	var out strings.Builder
	out.WriteString(home)
	if first {
		out.Reset()
		out.WriteString(clearScreen)
	}
	for _, line := range lines {
		out.WriteString(t.Cut(strings.TrimRight(line, " ")) + clearLine + "\n")
	}
	out.WriteString(clearBelow)
	_, err := io.WriteString(r.out, out.String())
	return err
}

// errDone ends a repetition without an error.
var errDone = errors.New("done")

// Pause waits, but no longer than the context lasts. It returns whether the time has passed.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
