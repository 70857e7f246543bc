// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestFollow(t *testing.T) {
	const second = int32(2)
	starting := set(attempts(jobsetv1alpha2.Attempt{Number: second}), job(0))
	ready := set(attempts(jobsetv1alpha2.Attempt{Number: second, ReadyTime: at(3)}))
	failed := set(isTrue(jobsetv1alpha2.JobSetFailed, "FailedJobs", "jobset failed"))
	unavailable := apierrors.NewServiceUnavailable("busy")

	for name, tc := range map[string]struct {
		reads     []any // views and errors; the last one stays
		want      string
		wantErr   string
		wantShown string
	}{
		"until the goal is reached": {
			reads: []any{starting, starting, ready},
			want:  "3 of 3 Jobs ready in attempt 2", wantShown: "train: 1 of 3 created, 0 of 3 ready (0s)\n",
		},
		"until the set fails": {
			reads:   []any{failed},
			wantErr: "Failed (FailedJobs): jobset failed",
		},
		"through a time in which the server does not answer": {
			reads: []any{unavailable, ready},
			want:  "3 of 3 Jobs ready in attempt 2", wantShown: "train: cannot be read now: busy (0s)\n",
		},
		"until the set is deleted": {
			reads:   []any{apierrors.NewNotFound(resourceJobSets, "train")},
			wantErr: "it was deleted",
		},
		"until an error that stays": {
			reads:   []any{errors.New("no such host")},
			wantErr: "no such host",
		},
		"until the time is over": {
			reads:   []any{starting},
			wantErr: "1 of 3 created, 0 of 3 ready", wantShown: "train: 1 of 3 created, 0 of 3 ready (0s)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer stop()
				var shown bytes.Buffer
				n := 0
				next := func(context.Context) (Progress, error) {
					next := tc.reads[min(n, len(tc.reads)-1)]
					n++
					if err, ok := next.(error); ok {
						return Progress{}, err
					}
					return look(GoalReady, next.(view), uid, second), nil
				}
				text, err := follow(ctx, time.Millisecond, next, &display{out: &shown, name: "train", start: time.Now()})
				message := ""
				if err != nil {
					message = err.Error()
				}
				if diff := cmp.Diff([]string{tc.want, tc.wantErr, tc.wantShown}, []string{text, message, shown.String()}); diff != "" {
					t.Errorf("text, error and progress (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestDisplay(t *testing.T) {
	show := func(d *display) {
		for _, step := range []struct {
			text string
			at   int
		}{{"0 of 9", 0}, {"0 of 9", 1}, {"1 of 9", 2}, {"2 of 9", 12}, {"3 of 9", 13}, {"3 of 9", 23}} {
			d.show(step.text, start.Add(time.Duration(step.at)*time.Second))
		}
		d.end()
	}
	for name, tc := range map[string]struct {
		terminal cli.Terminal
		want     string
	}{
		"in a file, a line when much time has passed and something has changed": {
			want: "train: 0 of 9 (0s)\ntrain: 2 of 9 (12s)\ntrain: 3 of 9 (23s)\n",
		},
		"on a terminal, one line that is cut and goes away": {
			terminal: cli.Terminal{Width: 15, Height: 5},
			want: "\rtrain: 0 of 9…\x1b[K\rtrain: 0 of 9…\x1b[K\rtrain: 1 of 9…\x1b[K" +
				"\rtrain: 2 of 9…\x1b[K\rtrain: 3 of 9…\x1b[K\rtrain: 3 of 9…\x1b[K\r\x1b[K",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			show(&display{out: &out, terminal: tc.terminal, name: "train", start: start})
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
