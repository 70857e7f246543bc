// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// pollInterval is how often a set is read.
	pollInterval = time.Second
	// linesEvery is how often a line of progress is written to what is no terminal.
	linesEvery = 10 * time.Second
)

// String names the goal, to go on after "until".
func (g Goal) String() string {
	switch g {
	case GoalSuspended:
		return "no pod is left"
	case GoalStopped:
		return "no Job is running"
	case GoalUpdated:
		return "all groups are updated and ready"
	case GoalPaused:
		return "the controller has seen it"
	}
	return "all Jobs, or groups, are ready, or the object has finished"
}

// waitForAll waits for one set after the other and reports whether all reached the goal.
func (r *runner) waitForAll(ctx context.Context, done []result) bool {
	if r.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, r.timeout)
		defer stop()
	}
	all := true
	for _, d := range done {
		look := func(ctx context.Context) (Progress, error) {
			return d.target.Do.Look(ctx, r.clients, d.name, r.action.goal, d.answer)
		}
		display := &display{out: r.streams.ErrOut, terminal: cli.TerminalOf(r.streams.ErrOut), name: d.name, start: time.Now()}
		text, err := follow(ctx, pollInterval, look, display)
		if err != nil {
			all = false
			r.report(context.WithoutCancel(ctx), d.object, r.ended(ctx, d.object, err))
			continue
		}
		if r.output.ForHumans() {
			fmt.Fprintf(r.streams.Out, "%s: %s\n", d.qualified(), text)
		}
	}
	return all
}

// ended explains why waiting ended before the goal was reached.
func (r *runner) ended(ctx context.Context, o object, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: timed out after %v: %w; run `kubectl jobset why %s` for the cause", o.qualified(), r.timeout, err, o.argument())
	case ctx.Err() != nil:
		return fmt.Errorf("%s: waiting was interrupted: %w", o.qualified(), err)
	}
	return fmt.Errorf("%s: %w", o.qualified(), err)
}

// follow looks until the goal is reached and returns the state then. When the time is over, the error is
// the state so far.
func follow(ctx context.Context, every time.Duration, look func(context.Context) (Progress, error), out *display) (string, error) {
	text := "not read yet"
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		p, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return false, nil // the text stays what was read last
		case err != nil && passing(err):
			text = "cannot be read now: " + err.Error()
			out.show(text, time.Now())
			return false, nil
		case apierrors.IsNotFound(err):
			return false, errors.New("it was deleted")
		case err != nil:
			return false, err
		}
		if p.Failure != "" {
			return false, errors.New(p.Failure)
		}
		if text = p.Text; !p.Reached {
			out.show(text, time.Now())
		}
		return p.Reached, nil
	})
	out.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return "", errors.New(text)
	case err != nil:
		return "", err
	}
	return text, nil
}

// passing reports whether reading may succeed a moment later.
func passing(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// display shows progress: in one line that changes on a terminal, else in a line now and then.
type display struct {
	out      io.Writer
	terminal cli.Terminal
	name     string
	start    time.Time

	shown   string
	shownAt time.Time
}

func (d *display) show(text string, now time.Time) {
	line := fmt.Sprintf("%s: %s (%s)", d.name, text, cli.Duration(now.Sub(d.start)))
	if d.terminal.Width > 0 {
		// One column stays free: some terminals begin a new line after the last one.
		narrow := d.terminal
		narrow.Width--
		fmt.Fprint(d.out, "\r"+d.terminal.Paint(cli.Busy, narrow.Cut(line))+"\x1b[K")
		d.shown = text
		return
	}
	if d.shown == "" || d.shown != text && now.Sub(d.shownAt) >= linesEvery {
		fmt.Fprintln(d.out, line)
		d.shown, d.shownAt = text, now
	}
}

// end takes the line off a terminal.
func (d *display) end() {
	if d.terminal.Width > 0 && d.shown != "" {
		fmt.Fprint(d.out, "\r\x1b[K")
	}
}
