// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// benchmarkRuns is how many runs BenchmarkPage stores. ARCHIVE_RUNS is another number, and ARCHIVE_FILE a file that is kept for the next
// time, because storing a million runs takes long.
const benchmarkRuns = 5000

// benchmarkStore returns a store with many runs over half a year.
func benchmarkStore(b *testing.B) (*Store, int) {
	n := benchmarkRuns
	if text := os.Getenv("ARCHIVE_RUNS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatalf("ARCHIVE_RUNS must be a number, and is %q", text)
		}
	}
	path := os.Getenv("ARCHIVE_FILE")
	if path == "" {
		path = filepath.Join(b.TempDir(), "archive.db")
	}
	s := open(b, Config{URL: path, Timeout: time.Minute})
	const batch = 2000
	for from := int(usage(b, s).Runs); from < n; from += batch {
		var runs []archive.Run
		for i := from; i < min(from+batch, n); i++ {
			runs = append(runs, benchmarkRun(i, n))
		}
		put(b, s, runs...)
	}
	return s, n
}

// benchmarkRun returns a run as a cluster has them: 500 users, 40 queues, 100 namespaces, 2000 nodes, one run in ten failed.
func benchmarkRun(i, n int) archive.Run {
	const halfAYear = 182 * 24 * 3600
	mixed := int(uint32(i) * 2654435761 >> 4)
	pick := func(of, salt int) int { return (mixed/(salt+1) + salt*i) % of }
	return newRun(i, func(run *archive.Run) {
		run.Namespace = fmt.Sprintf("team-%d", pick(100, 1))
		run.Labels = map[string]string{
			"app": fmt.Sprintf("app-%d", pick(300, 2)), "example.com/project": fmt.Sprintf("project-%d", pick(1000, 3)),
			"kueue.x-k8s.io/queue-name": fmt.Sprintf("queue-%d", pick(40, 4)), "tier": []string{"low", "high"}[pick(2, 5)],
		}
		run.User, run.Queue = fmt.Sprintf("user-%d", pick(500, 6)), run.Labels["kueue.x-k8s.io/queue-name"]
		run.Object.Kind = []string{"JobSet", "JobSet", "JobSet", "SequentialJob", "LeaderWorkerSet"}[pick(5, 7)]
		if pick(10, 8) == 0 {
			run.State = archive.RunFailed
			run.Failures = []archive.RunFailure{{Attempt: 1, Pod: "workers-0-0-abcde", Node: fmt.Sprintf("node-%d", pick(2000, 9)),
				Reason: []string{"OOMKilled", "Error", "Evicted", "NodeLost"}[pick(4, 10)]}}
		}
		if i%100_000 == 7 {
			run.State = archive.RunDeleted
		}
		run.EndTime = at(float64(i) * halfAYear / float64(n))
		run.BeginTime.Time = run.EndTime.Add(-time.Duration(1+pick(20_000, 11)*pick(20, 12)) * time.Second)
		run.Details = &archive.RunDetails{}
		run.Details.Spec.Raw = []byte(`{"replicatedJobs":[{"name":"workers","replicas":4,"template":{"spec":{"parallelism":8,"completions":8}}}]}`)
		run.Details.Status.Raw = []byte(`{"restarts":0}`)
	})
}

// BenchmarkPage reads the first page of 50 runs by each filter, and a page from the middle.
func BenchmarkPage(b *testing.B) {
	s, n := benchmarkStore(b)
	b.Logf("%d runs, %d bytes", n, usage(b, s).Bytes)
	run := benchmarkRun(n/100, n)
	newest, err := s.List(b.Context(), api.Query{Limit: 1})
	if err != nil || len(newest.Runs) == 0 {
		b.Fatalf("want the newest run, got %v", err)
	}
	span := newest.Runs[0].EndTime.Sub(day)
	field := func(field api.Field, value string, not bool) api.Query {
		return api.Query{Fields: []api.Requirement{{Field: field, Value: value, Not: not}}}
	}
	label := func(text string) api.Query {
		selector, err := labels.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		return api.Query{Labels: selector}
	}
	queries := map[string]api.Query{
		"none": {}, "name": field(api.FieldName, run.Name, false), "object": field(api.FieldObject, run.Object.Name, false),
		"state=Failed": field(api.FieldState, "Failed", false), "state=Deleted": field(api.FieldState, "Deleted", false),
		"state=Cancelled": field(api.FieldState, "Cancelled", false), "state!=Completed": field(api.FieldState, "Completed", true),
		"user": field(api.FieldUser, "user-77", false), "user!=": field(api.FieldUser, "user-77", true), "queue": field(api.FieldQueue, "queue-7", false),
		"cause": field(api.FieldCause, "OOMKilled", false), "node": field(api.FieldNode, "node-77", false), "kind": field(api.FieldKind, "SequentialJob", false),
		"label": label("app=app-7"), "label in": label("app in (app-7,app-8,app-9,none)"), "label!=": label("tier!=low"), "label exists": label("app"),
		"label absent": label("!app"),
	}
	for name, at := range map[string]time.Duration{"early": span / 50, "middle": span / 2, "late": span - time.Hour} {
		for _, f := range []api.Field{api.FieldBeganAfter, api.FieldBeganBefore, api.FieldEndedAfter, api.FieldEndedBefore} {
			queries[fmt.Sprintf("%s %s", f, name)] = field(f, day.Add(at).Format(time.RFC3339), false)
		}
	}
	queries["user and state"] = api.Query{Fields: []api.Requirement{{Field: api.FieldUser, Value: "user-77"}, {Field: api.FieldState, Value: "Failed"}}}
	queries["queue and node"] = api.Query{Fields: []api.Requirement{{Field: api.FieldQueue, Value: "queue-7"}, {Field: api.FieldNode, Value: "node-77"}}}
	for name, query := range queries {
		for where, namespace := range map[string]string{"all": "", "one": "team-7"} {
			b.Run(name+"/"+where, func(b *testing.B) {
				query := query
				query.Namespace, query.Limit = namespace, 50
				found := 0
				for b.Loop() {
					page, err := s.List(b.Context(), query)
					if err != nil {
						b.Fatal(err)
					}
					found = len(page.Runs)
				}
				b.ReportMetric(float64(found), "runs")
			})
		}
	}
}
