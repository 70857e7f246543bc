// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordtest is an archive of runs for tests of commands.
package recordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Namespace is the namespace of the user.
const Namespace = "ns"

// Server serves runs in their order, in pages.
type Server struct {
	*httptest.Server
	// Got are the requests: the path below the group, and the query.
	Got []string
	// Fail is the answer to all requests; nil for none.
	Fail *metav1.Status
	// Plain answers all requests with this text and the code; empty for none.
	Plain string
	Code  int
	// FailFrom is the number of the request from which the server is broken; 0 for never.
	FailFrom int
	// Page is how many runs a page has at most.
	Page int

	runs []archivev1alpha1.Run
}

// New returns a server with these runs.
func New(t *testing.T, runs ...archivev1alpha1.Run) *Server {
	t.Helper()
	s := &Server{runs: runs, Page: 500}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := strings.CutPrefix(r.URL.Path, "/apis/archive.jobset-apiserver.io/v1alpha1/")
		if !found {
			http.NotFound(w, r)
			return
		}
		s.Got = append(s.Got, strings.TrimSuffix(path+"?"+r.URL.Query().Encode(), "?"))
		if s.Plain != "" {
			http.Error(w, s.Plain, s.Code)
			return
		}
		code, object := s.answer(path, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *Server) answer(path string, r *http.Request) (int, any) {
	if s.Fail != nil {
		return int(s.Fail.Code), s.Fail
	}
	if s.FailFrom > 0 && len(s.Got) >= s.FailFrom {
		return http.StatusForbidden, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: "broken",
		}
	}
	if _, name, one := strings.Cut(path, "/runs/"); one {
		for i := range s.runs {
			if s.runs[i].Name == name {
				return http.StatusOK, s.runs[i]
			}
		}
		return http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf("runs.archive.jobset-apiserver.io %q not found", name),
			Details: &metav1.StatusDetails{Group: archivev1alpha1.GroupName, Kind: "runs", Name: name},
		}
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list := archivev1alpha1.RunList{TypeMeta: metav1.TypeMeta{APIVersion: archivev1alpha1.SchemeGroupVersion.String(), Kind: "RunList"}}
	to := min(len(s.runs), from+min(limit, s.Page))
	if list.Items = s.runs[from:to]; to < len(s.runs) {
		list.Continue = strconv.Itoa(to)
	}
	return http.StatusOK, list
}

// Off makes the server answer as one without a database does.
func (s *Server) Off() *Server {
	s.Fail = &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason: metav1.StatusReasonServiceUnavailable, Message: "the archive of runs is off: --archive-database turns it on",
	}
	return s
}

// Factory returns the factory of a command that asks the server, and what it writes.
func (s *Server) Factory() (f *cli.Factory, out, errOut fmt.Stringer) {
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	f = cli.NewFactory(streams)
	*f.Flags.APIServer, *f.Flags.Namespace = s.URL, Namespace
	return f, stdout, stderr
}

// Hostile has what must not reach a terminal: sequences that color, move the cursor and set the title, and a new line.
const Hostile = "\x1b[31mred\x1b[2J\x1b]0;title\x07\r\nnext"

// Run is a run of the JobSet in the namespace that ended at the time after an hour, with changes.
func Run(name string, end time.Time, changes ...func(*archivev1alpha1.Run)) archivev1alpha1.Run {
	run := archivev1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name + "-0a1b2c3d4e5f"},
		Object: archivev1alpha1.RunObject{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: name, UID: "uid-1", Execution: 1,
			CreationTime: metav1.NewTime(end.Add(-time.Hour)),
		},
		State: archivev1alpha1.RunCompleted, User: "alice",
		BeginTime: metav1.NewMicroTime(end.Add(-time.Hour)), EndTime: metav1.NewMicroTime(end),
		Pods: 2, Attempts: 1,
	}
	for _, change := range changes {
		change(&run)
	}
	return run
}

// Failed makes a run fail after a first cause on a node.
func Failed(reason, node string) func(*archivev1alpha1.Run) {
	return func(run *archivev1alpha1.Run) {
		run.State, run.Reason = archivev1alpha1.RunFailed, helper.ReasonReachedMaxRestarts
		run.Message = "jobset failed due to reaching max number of restarts"
		run.Attempts, run.Restarts = 3, 2
		code := int32(137)
		at := metav1.NewTime(run.EndTime.Add(-time.Minute))
		run.Failures = append(run.Failures, archivev1alpha1.RunFailure{
			Attempt: 3, Child: run.Object.Name + "-workers-0", Pod: run.Object.Name + "-workers-0-1-x7k2p", Node: node, Container: "main",
			ExitCode: &code, Reason: reason, Time: &at,
		})
	}
}
