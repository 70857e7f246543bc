// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// train was created an hour ago: one launcher and two Jobs of workers.
func train(change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := builders.Hub("train", builders.WithHubJobs("launcher", 1, 1), builders.WithHubJobs("workers", 2, 4))
	js.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	for _, f := range change {
		f(js)
	}
	return js
}

func counted(launcher, workers jobset.ReplicatedJobStatus) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		launcher.Name, workers.Name = "launcher", "workers"
		js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{workers, launcher}
	}
}

func condition(kind string, status metav1.ConditionStatus, reason string, ago time.Duration) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
	}
}

func suspend(value bool) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) { js.Spec.Suspend = &value }
}

type jobs = jobset.ReplicatedJobStatus

func TestRow(t *testing.T) {
	completed := func(js *jobset.JobSet) { js.Status.TerminalState = "Completed" }
	cases := map[string]struct {
		js   *jobset.JobSet
		want []any // after the name: TerminalState Restarts Completed Suspended Age, then the wide columns
	}{
		"without a status": {
			js:   train(),
			want: []any{nil, nil, nil, nil, "1h", "Pending", "0/3", "1/1", "JobsNotReady", "60m"},
		},
		"the Jobs exist, without pods": {
			js:   train(counted(jobs{}, jobs{})),
			want: []any{nil, "0", nil, nil, "1h", "Pending", "0/3", "1/1", "JobsNotReady", "60m"},
		},
		"some Jobs have pods": {
			js:   train(counted(jobs{Active: 1, Ready: 1}, jobs{Active: 1})),
			want: []any{nil, "0", nil, nil, "1h", "Starting", "1/3", "1/1", "JobsNotReady", "60m"},
		},
		"waiting for the order of starting": {
			js:   train(counted(jobs{Active: 1}, jobs{}), condition("StartupPolicyInProgress", metav1.ConditionTrue, "InOrderStartupPolicyInProgress", 0)),
			want: []any{nil, "0", nil, nil, "1h", "Starting", "0/3", "1/1", "InOrderStartupPolicyInProgress", "60m"},
		},
		"all Jobs are ready or done": {
			js:   train(counted(jobs{Succeeded: 1}, jobs{Active: 2, Ready: 2}), condition("StartupPolicyInProgress", metav1.ConditionFalse, "x", 0)),
			want: []any{nil, "0", nil, nil, "1h", "Running", "3/3", "1/1", nil, "60m"},
		},
		"suspended": {
			js:   train(suspend(true), counted(jobs{Suspended: 1}, jobs{Suspended: 2}), condition("Suspended", metav1.ConditionTrue, "SuspendedJobs", time.Minute)),
			want: []any{nil, "0", nil, "true", "1h", "Suspended", "0/3", "1/1", "SuspendedJobs", nil},
		},
		"resumed ten minutes ago": {
			js:   train(suspend(false), counted(jobs{Active: 1, Ready: 1}, jobs{Active: 2, Ready: 2}), condition("Suspended", metav1.ConditionFalse, "ResumeJobs", 10*time.Minute)),
			want: []any{nil, "0", nil, "false", "1h", "Running", "3/3", "1/1", nil, "10m"},
		},
		"restarting for the second time": {
			js: train(counted(jobs{}, jobs{}), condition("RestartingJobSet", metav1.ConditionTrue, "DefaultFailurePolicy", 0), func(js *jobset.JobSet) {
				js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 4}
				js.Status.Restarts, js.Status.RestartsCountTowardsMax = 3, 2
			}),
			want: []any{nil, "3", nil, nil, "1h", "Restarting", "0/3", "4/6", "DefaultFailurePolicy", "60m"},
		},
		"negative maxRestarts count as none": {
			js:   train(func(js *jobset.JobSet) { js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: -4} }),
			want: []any{nil, nil, nil, nil, "1h", "Pending", "0/3", "1/1", "JobsNotReady", "60m"},
		},
		"waiting for a name that is taken": {
			js:   train(counted(jobs{}, jobs{Active: 1}), condition("ChildNameConflict", metav1.ConditionTrue, "Taken", 0)),
			want: []any{nil, "0", nil, nil, "1h", "Starting", "0/3", "1/1", "Taken", "60m"},
		},
		"running, a name was taken once": {
			js:   train(counted(jobs{Ready: 1}, jobs{Ready: 2}), condition("ChildNameConflict", metav1.ConditionFalse, "Free", 0)),
			want: []any{nil, "0", nil, nil, "1h", "Running", "3/3", "1/1", nil, "60m"},
		},
		"completed after half an hour": {
			js: train(completed, counted(jobs{Succeeded: 1}, jobs{Succeeded: 2}), condition("RestartingJobSet", metav1.ConditionFalse, "JobSetCompleted", 0),
				condition("Completed", metav1.ConditionTrue, "AllJobsCompleted", 30*time.Minute)),
			want: []any{"Completed", "0", "True", nil, "1h", "Completed", "3/3", "1/1", "AllJobsCompleted", "30m"},
		},
		"completed, known by the terminal state only": {
			js:   train(completed),
			want: []any{"Completed", "0", nil, nil, "1h", "Completed", "0/3", "1/1", nil, nil},
		},
		"failed, suspended since": {
			js: train(suspend(true), counted(jobs{Failed: 1}, jobs{}), func(js *jobset.JobSet) { js.Status.TerminalState = "Failed" },
				condition("Failed", metav1.ConditionTrue, "FailedJobs", 59*time.Minute)),
			want: []any{"Failed", "0", nil, "true", "1h", "Failed", "0/3", "1/1", "FailedJobs", "60s"},
		},
		"being deleted": {
			js:   train(func(js *jobset.JobSet) { js.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, counted(jobs{Active: 1}, jobs{})),
			want: []any{nil, "0", nil, nil, "1h", "Terminating", "0/3", "1/1", "Deleted", "60m"},
		},
		"no Jobs at all": {
			js:   train(func(js *jobset.JobSet) { js.Spec.ReplicatedJobs = nil }, func(js *jobset.JobSet) { js.Status.Restarts = 1 }),
			want: []any{nil, "1", nil, nil, "1h", "Pending", "0/0", "2/2", "NoJobs", "60m"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append([]any{"train"}, tc.want...), row(tc.js, "1h", now)); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAttempt(t *testing.T) {
	type history struct {
		restarts, counted int32
		single            []int32
		inPlace           *int32
		numbers           []int32
		added             int32
	}
	limit := func(n int32) *jobset.FailurePolicy { return &jobset.FailurePolicy{MaxRestarts: n} }
	cases := map[string]struct {
		policy *jobset.FailurePolicy
		status history
		want   string
	}{
		"the only attempt, without a policy":                  {want: "1/1"},
		"restarted before the policy was removed":             {status: history{restarts: 7, counted: 7}, want: "8/8"},
		"the first of a policy that restarts nothing":         {policy: limit(0), want: "1/1"},
		"the first with a negative limit":                     {policy: limit(-4), want: "1/1"},
		"the first of five":                                   {policy: limit(4), want: "1/5"},
		"counted restarts use the limit up":                   {policy: limit(4), status: history{restarts: 3, counted: 3}, want: "4/5"},
		"the last one":                                        {policy: limit(4), status: history{restarts: 4, counted: 4}, want: "5/5"},
		"restarts that do not count leave the limit as it is": {policy: limit(4), status: history{restarts: 7}, want: "8/12"},
		"some count": {policy: limit(4), status: history{restarts: 3, counted: 2}, want: "4/6"},
		"no limit is left, restarts that do not count go on":              {policy: limit(0), status: history{restarts: 2}, want: "3/3"},
		"restarts of single Jobs leave fewer":                             {policy: limit(4), status: history{restarts: 1, counted: 1, single: []int32{0, 2}}, want: "2/3"},
		"single Jobs have used the limit up":                              {policy: limit(4), status: history{single: []int32{1, 3}}, want: "1/1"},
		"the limit of a policy that was added later is below all":         {policy: limit(1), status: history{restarts: 3, counted: 3}, want: "4/4"},
		"in-place attempts go beyond restarts":                            {policy: limit(4), status: history{restarts: 1, counted: 1, inPlace: ptr.To[int32](3)}, want: "4/5"},
		"in-place attempts lag behind restarts":                           {policy: limit(4), status: history{restarts: 2, counted: 1, inPlace: ptr.To[int32](1)}, want: "3/6"},
		"the number of the newest attempt, of a set that never restarted": {policy: limit(4), status: history{numbers: []int32{1}}, want: "1/5"},
		"suspensions and restarts of Jobs are attempts too":               {policy: limit(4), status: history{restarts: 1, counted: 1, numbers: []int32{6, 7}}, want: "7/10"},
		"retries add restarts":                                            {policy: limit(2), status: history{restarts: 3, counted: 2, added: 3, numbers: []int32{4}}, want: "4/7"},
		"retries add restarts of single Jobs":                             {policy: limit(2), status: history{single: []int32{2}, added: 3, numbers: []int32{4}}, want: "4/7"},
		"without a policy nothing is left, whatever was added":            {status: history{added: 3, numbers: []int32{2}}, want: "2/2"},
		"the largest numbers":                                             {policy: limit(math.MaxInt32), status: history{restarts: math.MaxInt32}, want: "2147483648/4294967295"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(counted(jobs{}, jobs{JobRestarts: tc.status.single, JobRestartsCountTowardsMax: tc.status.single}))
			js.Spec.FailurePolicy = tc.policy
			js.Status.Restarts, js.Status.RestartsCountTowardsMax = tc.status.restarts, tc.status.counted
			js.Status.CurrentInPlaceRestartAttempt = tc.status.inPlace
			js.Status.AddedRestarts = tc.status.added
			for _, n := range tc.status.numbers {
				js.Status.Attempts = append(js.Status.Attempts, jobset.Attempt{Number: n})
			}
			if diff := cmp.Diff(tc.want, summarize(js, now).attempt); diff != "" {
				t.Errorf("attempt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	convertor := NewTable(func() time.Time { return now })
	list := &jobset.JobSetList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: ptr.To[int64](5)},
		Items:    []jobset.JobSet{*train(), *train()},
	}
	cases := map[string]struct {
		object      runtime.Object
		options     runtime.Object
		wantRows    int
		wantVersion string
		wantColumns []string
	}{
		"one": {
			object: train(), wantRows: 1, wantVersion: "1",
			wantColumns: []string{"Name/0", "TerminalState/0", "Restarts/0", "Completed/0", "Suspended/0", "Age/0", "Phase/1", "Ready/1", "Attempt/1", "Reason/1", "Duration/1"},
		},
		"a list, without headers":        {object: list, options: &metav1.TableOptions{NoHeaders: true}, wantRows: 2, wantVersion: "9"},
		"an empty list, without headers": {object: &jobset.JobSetList{}, options: &metav1.TableOptions{NoHeaders: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table, err := convertor.ConvertToTable(context.Background(), tc.object, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range table.ColumnDefinitions {
				got = append(got, c.Name+"/"+string('0'+c.Priority))
			}
			if diff := cmp.Diff(tc.wantColumns, got); diff != "" {
				t.Errorf("columns and priorities (-want +got):\n%s", diff)
			}
			if len(table.Rows) != tc.wantRows || table.ResourceVersion != tc.wantVersion {
				t.Errorf("got %d rows at version %q, want %d at %q", len(table.Rows), table.ResourceVersion, tc.wantRows, tc.wantVersion)
			}
			for _, row := range table.Rows {
				if len(row.Cells) != len(columns) || row.Object.Object == nil {
					t.Errorf("a row has %d cells of %d, object %v", len(row.Cells), len(columns), row.Object.Object)
				}
			}
		})
	}

	table, err := convertor.ConvertToTable(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if table.Continue != "more" || ptr.Deref(table.RemainingItemCount, 0) != 5 {
		t.Errorf("the list's position got lost: %q, %v", table.Continue, table.RemainingItemCount)
	}
	if _, err := convertor.ConvertToTable(context.Background(), &metav1.Status{}, nil); err == nil {
		t.Error("something else than a JobSet is printed")
	}
}

func TestSelection(t *testing.T) {
	running := train(suspend(false))
	held := train(suspend(true), func(js *jobset.JobSet) { js.Labels = map[string]string{"team": "a"} })
	done := train(func(js *jobset.JobSet) { js.Status.TerminalState = "Completed" })
	cases := map[string]struct {
		label, field                    string
		wantRunning, wantHeld, wantDone bool
	}{
		"everything":                         {wantRunning: true, wantHeld: true, wantDone: true},
		"by name":                            {field: "metadata.name=train", wantRunning: true, wantHeld: true, wantDone: true},
		"by another name":                    {field: "metadata.name=other"},
		"by namespace":                       {field: "metadata.namespace=default", wantRunning: true, wantHeld: true, wantDone: true},
		"suspended":                          {field: "spec.suspend=true", wantHeld: true},
		"not suspended, absent counts":       {field: "spec.suspend=false", wantRunning: true, wantDone: true},
		"finished":                           {field: "status.terminalState!=", wantDone: true},
		"completed":                          {field: "status.terminalState=Completed", wantDone: true},
		"unfinished":                         {field: "status.terminalState=", wantRunning: true, wantHeld: true},
		"by label":                           {label: "team=a", wantHeld: true},
		"by label and field, which disagree": {label: "team=a", field: "spec.suspend=false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			label, err := labels.Parse(tc.label)
			if err != nil {
				t.Fatal(err)
			}
			selector, err := fields.ParseSelector(tc.field)
			if err != nil {
				t.Fatal(err)
			}
			matcher := storage.SelectionPredicate{Label: label, Field: selector, GetAttrs: attributes}
			var got []bool
			for _, js := range []*jobset.JobSet{running, held, done} {
				matches, err := matcher.Matches(js)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, matches)
			}
			if diff := cmp.Diff([]bool{tc.wantRunning, tc.wantHeld, tc.wantDone}, got); diff != "" {
				t.Errorf("running, held, done (-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := attributes(&jobset.JobSetList{}); err == nil {
		t.Error("something else than a JobSet has attributes")
	}
}
