// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// filter is a query with one requirement, and what it means.
type filter struct {
	name    string
	labels  string
	field   api.Requirement
	matches func(run archive.Run) bool
}

func (f filter) add(t testing.TB, query *api.Query) {
	t.Helper()
	if f.labels == "" {
		query.Fields = append(query.Fields, f.field)
		return
	}
	selector, err := labels.Parse(f.labels)
	if err != nil {
		t.Fatal(err)
	}
	if query.Labels != nil {
		requirements, _ := query.Labels.Requirements()
		selector = selector.Add(requirements...)
	}
	query.Labels = selector
}

func byLabel(selector string) filter {
	parsed, err := labels.Parse(selector)
	return filter{name: "label " + selector, labels: selector, matches: func(run archive.Run) bool {
		return err == nil && parsed.Matches(labels.Set(run.Labels))
	}}
}

// byField returns the filters for a value of a field, and for all others.
func byField(field api.Field, value string, has func(run archive.Run) bool) []filter {
	return []filter{
		{name: fmt.Sprintf("%s=%s", field, value), field: api.Requirement{Field: field, Value: value}, matches: has},
		{name: fmt.Sprintf("%s!=%s", field, value), field: api.Requirement{Field: field, Value: value, Not: true},
			matches: func(run archive.Run) bool { return !has(run) }},
	}
}

func byTime(field api.Field, value string, has func(run archive.Run, at time.Time) bool) filter {
	at, err := time.Parse(time.RFC3339Nano, value)
	return filter{name: fmt.Sprintf("%s=%s", field, value), field: api.Requirement{Field: field, Value: value},
		matches: func(run archive.Run) bool { return err == nil && has(run, at) }}
}

// filters are filters of all kinds.
func filters() []filter {
	list := []filter{
		byLabel("team=red"), byLabel("team==blue"), byLabel("team in (red, green, none)"), byLabel("team notin (red, blue)"),
		byLabel("team!=red"), byLabel("team"), byLabel("!team"), byLabel("team=red,size in (large)"), byLabel("team,size!=large"),
	}
	for _, value := range []string{"2026-03-01T00:00:00Z", "2026-03-01T02:46:40+01:00", "2026-03-01T01:00:00.0000001Z", "2026-03-02T00:00:00Z",
		"2020-01-01T00:00:00Z"} {
		list = append(list,
			byTime(api.FieldBeganAfter, value, func(run archive.Run, at time.Time) bool { return !run.BeginTime.Time.Before(at) }),
			byTime(api.FieldBeganBefore, value, func(run archive.Run, at time.Time) bool { return run.BeginTime.Time.Before(at) }),
			byTime(api.FieldEndedAfter, value, func(run archive.Run, at time.Time) bool { return !run.EndTime.Time.Before(at) }),
			byTime(api.FieldEndedBefore, value, func(run archive.Run, at time.Time) bool { return run.EndTime.Time.Before(at) }))
	}
	failed := func(has func(archive.RunFailure) bool) func(archive.Run) bool {
		return func(run archive.Run) bool { return slices.ContainsFunc(run.Failures, has) }
	}
	return slices.Concat(list,
		byField(api.FieldName, randomRuns[7].Name, func(run archive.Run) bool { return run.Name == randomRuns[7].Name }),
		byField(api.FieldState, "Failed", func(run archive.Run) bool { return run.State == archive.RunFailed }),
		byField(api.FieldState, "Completed", func(run archive.Run) bool { return run.State == archive.RunCompleted }),
		byField(api.FieldUser, "user-1", func(run archive.Run) bool { return run.User == "user-1" }),
		byField(api.FieldUser, "", func(run archive.Run) bool { return run.User == "" }),
		byField(api.FieldQueue, "queue-1", func(run archive.Run) bool { return run.Queue == "queue-1" }),
		byField(api.FieldCause, "cause-1", failed(func(f archive.RunFailure) bool { return f.Reason == "cause-1" })),
		byField(api.FieldCause, "", func(run archive.Run) bool { return len(run.Failures) == 0 }),
		byField(api.FieldNode, "node-1", failed(func(f archive.RunFailure) bool { return f.Node == "node-1" })),
		byField(api.FieldKind, "JobSet", func(run archive.Run) bool { return run.Object.Kind == "JobSet" }),
		byField(api.FieldObject, randomRuns[5].Object.Name, func(run archive.Run) bool { return run.Object.Name == randomRuns[5].Object.Name }),
	)
}

// randomRuns are runs of all kinds, several of which ended at the same time. Their durations reach from nothing to years.
var randomRuns = func() []archive.Run {
	random := rand.New(rand.NewSource(7))
	one := func(of ...string) string { return of[random.Intn(len(of))] }
	var runs []archive.Run
	for n := range 150 {
		runs = append(runs, newRun(n, func(run *archive.Run) {
			run.Namespace = one("team", "other")
			run.Object.Name = fmt.Sprintf("train-%03d", n/2)
			run.Object.Kind = one("JobSet", "SequentialJob", "LeaderWorkerSet")
			run.State = archive.RunState(one("Completed", "Completed", "Failed", "Cancelled", "Deleted", "Strange"))
			run.User, run.Queue = one("user-1", "user-2", ""), one("queue-1", "queue-2", "")
			run.Labels = map[string]string{}
			if team := one("red", "blue", "green", ""); team != "" {
				run.Labels["team"] = team
			}
			if size := one("large", "small", ""); size != "" {
				run.Labels["size"] = size
			}
			for range random.Intn(4) {
				run.Failures = append(run.Failures, archive.RunFailure{Reason: one("cause-1", "cause-2", "cause-3"), Node: one("node-1", "node-2", "node-3")})
			}
			run.EndTime = at(float64(random.Intn(200)) * 60)
			duration := time.Duration(random.Int63n(1 << (1 + random.Intn(57)))).Truncate(time.Microsecond)
			run.BeginTime.Time = run.EndTime.Add(-duration)
		}))
	}
	return runs
}()
