// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errGone = apierrors.NewNotFound(schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}, "train")

// frames draws one after the other; the last element may be an error.
func frames(all ...any) func(context.Context, Terminal) (Frame, error) {
	n := 0
	return func(context.Context, Terminal) (Frame, error) {
		next := all[n]
		n++
		if err, is := next.(error); is {
			return Frame{}, err
		}
		return next.(Frame), nil
	}
}

func frame(key string, lines ...string) Frame { return Frame{Key: key, Lines: lines} }

func TestRedraw(t *testing.T) {
	broken := errors.New("broken")
	terminal := Terminal{Width: 40, Height: 4}
	for name, tc := range map[string]struct {
		terminal      Terminal
		draw          func(context.Context, Terminal) (Frame, error)
		want, wantErr string
	}{
		"a terminal draws over the last frame": {
			terminal, frames(frame("1", "a 1s", "b"), frame("1", "a 2s", "b"), errGone),
			clearScreen + "a 1s" + clearLine + "\nb" + clearLine + "\n" + clearBelow + home + "a 2s" + clearLine + "\nb" + clearLine + "\n" + clearBelow + "jobset/train was deleted.\n", "",
		},
		"a terminal has room for few lines": {
			terminal, frames(frame("1", "a", "b", "c", "d"), errGone),
			clearScreen + "a" + clearLine + "\nb" + clearLine + "\n2 more lines below" + clearLine + "\n" + clearBelow + "jobset/train was deleted.\n", "",
		},
		"a file has the changes alone": {
			Terminal{}, frames(frame("1", "a 1s"), frame("1", "a 2s"), frame("2", "b 3s"), errGone),
			"TIME\na 1s\n\nTIME\nb 3s\njobset/train was deleted.\n", "",
		},
		"errors in between":         {Terminal{}, frames(frame("1", "a"), broken, frame("2", "b"), errGone), "TIME\na\n\nTIME\nb\njobset/train was deleted.\n", ""},
		"errors that stay":          {Terminal{}, frames(frame("1", "a"), broken, broken, broken, broken, broken), "TIME\na\n", "watching jobset/train: broken"},
		"nothing is there at first": {Terminal{}, frames(errGone), "", errGone.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &redrawer{out: &out, terminal: func() Terminal { return tc.terminal }, name: "jobset/train", draw: tc.draw, every: time.Microsecond}
			text := ""
			if err := r.run(t.Context()); err != nil {
				text = err.Error()
			}
			got := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllString(out.String(), "TIME")
			if diff := cmp.Diff([]string{tc.want, tc.wantErr}, []string{got, text}); diff != "" {
				t.Errorf("output and error (-want +got):\n%s", diff)
			}
		})
	}
}
