// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
)

var now = time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)

func clients(t *testing.T, s *recordtest.Server) *cli.Clients {
	t.Helper()
	f, _, _ := s.Factory()
	c, err := f.Clients()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDuration(t *testing.T) {
	const invalid = "must be a duration like 30d, 2w or 12h, not "
	const bounds = "must be more than 0 and at most 36500d, not "
	for text, want := range map[string]any{
		"30d": 30 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "1w2d3h": 9*24*time.Hour + 3*time.Hour, "90m": 90 * time.Minute,
		"1.5h": 90 * time.Minute, "36500d": 36500 * 24 * time.Hour,
		"": bounds + `""`, "0d": bounds + `"0d"`, "36501d": bounds + `"36501d"`, "9999w99999d": bounds + `"9999w99999d"`,
		"9999w99999d2000000h": bounds + `"9999w99999d2000000h"`,
		"-1d":                 invalid + `"-1d"`, "1d2w": invalid + `"1d2w"`, "5": invalid + `"5"`, "d": invalid + `"d"`, "123456d": invalid + `"123456d"`,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := record.Duration(text)
			var result any = got
			if err != nil {
				result = err.Error()
			}
			if diff := cmp.Diff(want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	var runs []archivev1alpha1.Run
	for i := range 7 {
		runs = append(runs, recordtest.Run(fmt.Sprintf("r%d", i), now))
	}
	for name, tc := range map[string]struct {
		limit    int
		want     []int
		wantMore bool
		requests []string
	}{
		"all, in three pages": {want: []int{3, 3, 1}, requests: []string{"runs?limit=500", "runs?continue=3&limit=500", "runs?continue=6&limit=500"}},
		"some":                {limit: 4, want: []int{3, 1}, wantMore: true, requests: []string{"runs?limit=4", "runs?continue=3&limit=1"}},
		"as many as there are": {limit: 7, want: []int{3, 3, 1}, requests: []string{
			"runs?limit=7", "runs?continue=3&limit=4", "runs?continue=6&limit=1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordtest.New(t, runs...)
			s.Page = 3
			var got []int
			q := record.Query{}
			more, err := q.Pages(t.Context(), clients(t, s), tc.limit, func(page []archivev1alpha1.Run) error {
				got = append(got, len(page))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || more != tc.wantMore {
				t.Errorf("more is %v, want %v; sizes of pages (-want +got):\n%s", more, tc.wantMore, diff)
			}
			if diff := cmp.Diff(tc.requests, s.Got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueryEscapesValues(t *testing.T) {
	s := recordtest.New(t)
	q := record.Query{Namespace: "ns", Labels: "team=ml", Fields: map[string]string{"user": "a,b=c", "queue": ""}, Since: now}
	if _, err := q.Pages(t.Context(), clients(t, s), 0, func([]archivev1alpha1.Run) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{"namespaces/ns/runs?fieldSelector=queue%3D%2Cuser%3Da%5C%2Cb%5C%3Dc%2CendedAfter%3D2026-03-09T15%3A00%3A00Z&labelSelector=team%3Dml&limit=500"}
	if diff := cmp.Diff(want, s.Got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		server func(*recordtest.Server)
		want   string
	}{
		"the archive is off": {func(s *recordtest.Server) { s.Off() }, "the archive of runs is off: --archive-database turns it on\n" +
			"Only the archive of runs does not answer. JobSets and the other kinds do not depend on it."},
		"the group is not served": {func(s *recordtest.Server) { s.Plain, s.Code = "404 page not found", http.StatusNotFound },
			"the server could not find the requested resource (get runs.archive.jobset-apiserver.io)\nThis cluster serves no archive of runs: jobset-apiserver is older " +
				"than the archive, or there is no APIService v1alpha1.archive.jobset-apiserver.io."},
		"the server is away": {func(s *recordtest.Server) { s.Plain, s.Code = "service unavailable", http.StatusServiceUnavailable },
			"the server is currently unable to handle the request (get runs.archive.jobset-apiserver.io)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordtest.New(t)
			tc.server(s)
			q := record.Query{}
			_, err := q.Pages(t.Context(), clients(t, s), 0, func([]archivev1alpha1.Run) error { return nil })
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorOfPageEndsPages(t *testing.T) {
	s, full := recordtest.New(t, recordtest.Run("a", now), recordtest.Run("b", now)), errors.New("full")
	s.Page = 1
	q := record.Query{}
	if _, err := q.Pages(t.Context(), clients(t, s), 0, func([]archivev1alpha1.Run) error { return full }); !errors.Is(err, full) || len(s.Got) != 1 {
		t.Errorf("got %v after %d requests, want %v after 1", err, len(s.Got), full)
	}
}

func TestGetOfMissingRun(t *testing.T) {
	_, err := record.Get(t.Context(), clients(t, recordtest.New(t)), "gone")
	want := "runs.archive.jobset-apiserver.io \"gone\" not found in the namespace ns; `kubectl jobset history` lists the runs"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTextOfHostileRun(t *testing.T) {
	run := recordtest.Run("train", now, recordtest.Failed(recordtest.Hostile, recordtest.Hostile), func(run *archivev1alpha1.Run) {
		run.User, run.EndUser, run.Message, run.Reason = recordtest.Hostile, recordtest.Hostile, recordtest.Hostile, recordtest.Hostile
		run.State, run.Object.Kind, run.Object.Name = recordtest.Hostile, recordtest.Hostile, recordtest.Hostile
	})
	for _, text := range []string{
		record.Sentence(&run, now), record.Object(&run), record.Reason(&run), record.Failure(record.Last(&run)), record.Cell(run.Message),
	} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q has control characters", text)
		}
	}
}

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "@sum": "'@sum", "-x": "'-x", "a=b": "a=b", "\t=1": "'=1", "\x1b[31mred": "[31mred",
	} {
		if got := record.Cell(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	cancelled := func(run *archivev1alpha1.Run) {
		run.State, run.EndUser, run.Object.Execution = archivev1alpha1.RunCancelled, "bob", 2
	}
	for want, run := range map[string]archivev1alpha1.Run{
		"record of JobSet ns/train, execution 1: Completed 3h ago (2026-03-09 12:00:00 UTC), created by alice":                    recordtest.Run("train", now.Add(-3*time.Hour)),
		"record of JobSet ns/train, execution 2: Cancelled 60m ago (2026-03-09 14:00:00 UTC), created by alice, cancelled by bob": recordtest.Run("train", now.Add(-time.Hour), cancelled),
	} {
		if diff := cmp.Diff(want, record.Sentence(&run, now)); diff != "" {
			t.Errorf("sentence (-want +got):\n%s", diff)
		}
	}
}

func TestDetailsOfOtherVersionsAreNotRead(t *testing.T) {
	details := &archivev1alpha1.RunDetails{Spec: runtime.RawExtension{Raw: []byte(`{}`)}, Status: runtime.RawExtension{Raw: []byte(`{"restarts":2}`)}}
	for name, tc := range map[string]struct {
		change func(*archivev1alpha1.Run)
		want   bool
	}{
		"the version that the plugin knows": {func(run *archivev1alpha1.Run) { run.Details = details }, true},
		"no details":                        {func(*archivev1alpha1.Run) {}, false},
		"a later version": {func(run *archivev1alpha1.Run) {
			run.Details, run.Object.APIVersion = details, "jobset.x-k8s.io/v2"
		}, false},
		"another kind": {func(run *archivev1alpha1.Run) { run.Details, run.Object.Kind = details, "LeaderWorkerSet" }, false},
		"a damaged status": {func(run *archivev1alpha1.Run) {
			run.Details = &archivev1alpha1.RunDetails{Spec: details.Spec, Status: runtime.RawExtension{Raw: []byte(`{"restarts":"x"}`)}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := recordtest.Run("train", now, tc.change)
			js := record.JobSet(&run)
			if got := js != nil; got != tc.want || got && (js.Status.Restarts != 2 || js.Name != "train" || js.UID != "uid-1") {
				t.Errorf("got %v, want a set: %v", js, tc.want)
			}
		})
	}
}
