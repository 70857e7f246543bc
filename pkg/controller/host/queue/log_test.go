// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestFailuresAreLoggedOnce syncs two sets, each of which fails some times before it succeeds.
func TestFailuresAreLoggedOnce(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "j", errors.New("exceeded quota: q"))
	for name, tc := range map[string]struct {
		fail func() error
		want []string
	}{
		"what a server decides is logged for each set": {
			func() error { return denied },
			[]string{
				`Sync failed, trying again: jobs "j" is forbidden: exceeded quota: q jobset=ns/a`, `Sync failed, trying again: jobs "j" is forbidden: exceeded quota: q jobset=ns/b`,
				"Succeeded after failures jobset=ns/a times=4", "Succeeded after failures jobset=ns/b times=4",
			},
		},
		"that a server does not answer is logged once": {
			func() error { return errors.New("connection refused") },
			[]string{"Sync failed, trying again: connection refused", "No failure for this reason any more times=8"},
		},
		"a panic is logged with its stack": {
			func() error { panic("no such thing") },
			[]string{
				"Sync failed, trying again: panic: no such thing jobset=ns/a with stack", "Sync failed, trying again: panic: no such thing jobset=ns/b with stack",
				"Succeeded after failures jobset=ns/a times=4", "Succeeded after failures jobset=ns/b times=4",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
				q, calls := New("jobset"), map[cache.ObjectName]int{}
				var running sync.WaitGroup
				running.Go(func() {
					q.Run(ctx, 1, func(_ context.Context, key cache.ObjectName) (Due, error) {
						if calls[key]++; calls[key] <= 4 {
							return Due{}, tc.fail()
						}
						return Due{}, nil
					})
				})
				q.Add(cache.NewObjectName("ns", "a"))
				q.Add(cache.NewObjectName("ns", "b"))
				time.Sleep(time.Hour)
				cancel()
				running.Wait()
				got := linesOf(t, logger)
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("lines (-want +got):\n%s", d)
				}
			})
		})
	}
}

// linesOf returns what was logged, sorted, with those fields that the test is about.
func linesOf(t *testing.T, logger klog.Logger) (lines []string) {
	t.Helper()
	sink, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger keeps no lines")
	}
	for _, entry := range sink.GetBuffer().Data() {
		line := entry.Message
		if entry.Err != nil {
			line += ": " + entry.Err.Error()
		}
		general := strings.Contains(line, "connection refused")
		fields := slices.Concat(entry.WithKVList, entry.ParameterKVList)
		for i := 0; i+1 < len(fields); i += 2 {
			switch fields[i] {
			case "jobset":
				if !general {
					line += fmt.Sprintf(" jobset=%v", fields[i+1])
				}
			case "times":
				line += fmt.Sprintf(" times=%v", fields[i+1])
			case "stack":
				line += " with stack"
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(kind(a), kind(b)) })
	return lines
}

// kind is how a line begins: failures come first.
func kind(line string) string {
	if strings.HasPrefix(line, "Sync failed") {
		return ""
	}
	return line
}
