// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/archivetest"
	clientset "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/archive/v1alpha1"
)

const runsPath = "/apis/archive.jobset-apiserver.io/v1alpha1/namespaces/default/runs"

// endedRuns returns runs in a namespace. The first one ended last.
func endedRuns(namespace string, n int) []api.Run {
	runs := make([]api.Run, n)
	for i := range runs {
		name := fmt.Sprintf("run-%04d", i)
		key := archive.Key{Object: types.UID(namespace + name), Execution: 1}
		runs[i] = api.Run{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: key.UID(), Labels: map[string]string{"team": "a"}},
			Object:     api.RunObject{Kind: "JobSet", Name: name, UID: key.Object, Execution: 1},
			State:      api.RunCompleted, User: "alice",
			BeginTime: metav1.NewMicroTime(time.Now().Add(-time.Duration(i+60) * time.Minute)),
			EndTime:   metav1.NewMicroTime(time.Now().Add(-time.Duration(i) * time.Minute)),
			Details:   &api.RunDetails{Spec: runtime.RawExtension{Raw: []byte(`{"suspend":true}`)}},
		}
	}
	return runs
}

// withArchive returns the server with an archive; nil for none.
func withArchive(t *testing.T, store archive.Store, changes ...func(*apiserver.Config)) *inProcess {
	t.Helper()
	config := newConfig(t)
	config.Runs = store
	for _, change := range changes {
		change(config)
	}
	return startInProcess(t, resource{path: runsPath, name: "run-0000"}, config)
}

// client returns the generated client of a server, which speaks a media type.
func (s *inProcess) client(t *testing.T, media string) clientset.ArchiveV1alpha1Interface {
	t.Helper()
	listening := httptest.NewServer(s.handler)
	t.Cleanup(listening.Close)
	config := &clientrest.Config{Host: listening.URL, QPS: -1, ContentConfig: clientrest.ContentConfig{ContentType: media, AcceptContentTypes: media}}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// get sends a request with an Accept header, and returns the code and the body.
func (s *inProcess) get(path, accept string) (int, []byte) {
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Accept", accept)
	s.handler.ServeHTTP(w, req)
	return w.Code, w.Body.Bytes()
}

// The generated client reads what the server has, in both encodings, and the pager of client-go reads all of it.
func TestClientsReadRuns(t *testing.T) {
	runs := endedRuns("default", archive.MaxLimit+203)
	s := withArchive(t, archivetest.New(slices.Concat(runs, endedRuns("other", 2))...))
	for _, media := range []string{mediaJSON, mediaProtobuf} {
		client := s.client(t, media).Runs("default")
		run, err := client.Get(t.Context(), "run-0003", metav1.GetOptions{})
		if err != nil || run.UID != runs[3].UID || run.Details == nil || string(run.Details.Spec.Raw) != `{"suspend":true}` {
			t.Errorf("%s: got %v, %v", media, run, err)
		}
		page, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(page.Items) != archive.MaxLimit || page.Continue == "" || page.ResourceVersion != "" || page.RemainingItemCount != nil {
			t.Errorf("%s: a page without a limit: %d runs, %+v, %v", media, len(page.Items), page.ListMeta, err)
		}
		for _, size := range []int64{7, 500, 10_000} {
			var names []string
			pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) { return client.List(t.Context(), options) }))
			pages.PageSize = size
			err := pages.EachListItem(t.Context(), metav1.ListOptions{}, func(object runtime.Object) error {
				run := object.(*archivev1alpha1.Run)
				if run.Details != nil {
					t.Errorf("%s has details in a list", run.Name)
				}
				names = append(names, run.Name)
				return nil
			})
			if err != nil || len(names) != len(runs) || !slices.IsSorted(names) {
				t.Errorf("%s in pages of %d: %d runs, %v", media, size, len(names), err)
			}
		}
		all, err := s.client(t, media).Runs("").List(t.Context(), metav1.ListOptions{LabelSelector: "team=a", FieldSelector: "metadata.namespace=other,user=alice"})
		if err != nil || len(all.Items) != 2 {
			t.Errorf("%s: got %v, %v", media, all, err)
		}
	}
}

func TestMistakesAboutRuns(t *testing.T) {
	s := withArchive(t, archivetest.New(endedRuns("default", 3)...))
	for name, tc := range map[string]struct {
		method, path string
		code         int32
		want         string
	}{
		"an unknown field": {http.MethodGet, runsPath + "?fieldSelector=status.state%3DFailed", 400,
			`field label "status.state" is not supported: use one of metadata.name, metadata.namespace, state, user, queue, cause, node, kind, object, ` +
				`beganAfter, beganBefore, endedAfter, endedBefore`},
		"an unknown state": {http.MethodGet, runsPath + "?fieldSelector=state%3DDone", 400,
			`fieldSelector: state must be Completed, Failed, Cancelled or Deleted, not "Done"`},
		"a version": {http.MethodGet, runsPath + "?resourceVersion=5", 400,
			`resourceVersion: must be empty or 0, because runs have no resource version, not "5"`},
		"a token of another list": {http.MethodGet, runsPath + "?continue=abc", 410,
			"the continue token is damaged, or it belongs to a list with other selectors: list again without continue, and keep namespace and selectors " +
				"for the other pages"},
		"a watch": {http.MethodGet, runsPath + "?watch=true", 405, `watch is not supported on resources of kind "runs.archive.jobset-apiserver.io"`},
		"a match without a version": {http.MethodGet, runsPath + "?resourceVersionMatch=Exact", 422,
			`ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`},
		"a run that does not exist": {http.MethodGet, runsPath + "/b", 404, `runs.archive.jobset-apiserver.io "b" not found`},
	} {
		_, status := s.send(t, tc.method, tc.path, mediaJSON, nil)
		if status == nil || status.Code != tc.code || status.Message != tc.want {
			t.Errorf("%s: got %+v, want %d: %s", name, status, tc.code, tc.want)
		}
	}
}

// Runs are not created or changed by clients, and not deleted many at once.
func TestMethodsOfRuns(t *testing.T) {
	s := withArchive(t, archivetest.New(endedRuns("default", 1)...))
	for name, request := range map[string][2]string{
		"deletecollection": {http.MethodDelete, runsPath}, "create": {http.MethodPost, runsPath}, "update": {http.MethodPut, s.object()},
		"patch": {http.MethodPatch, s.object()},
	} {
		w, req := httptest.NewRecorder(), httptest.NewRequest(request[0], request[1], strings.NewReader("{}"))
		req.Header.Set("Content-Type", mediaJSON)
		s.handler.ServeHTTP(w, req)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	if code, _ := s.get(s.object()+"/status", mediaJSON); code != http.StatusNotFound {
		t.Errorf("the status of a run: %d", code)
	}
	// What clients make of it is the usual message.
	err := s.client(t, mediaJSON).RESTClient().Delete().Namespace("default").Resource("runs").Do(t.Context()).Error()
	if want := "the server does not allow this method on the requested resource"; !apierrors.IsMethodNotSupported(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// reviewer notes what admission gets.
type reviewer struct {
	seen []string
	err  error
}

// Handles implements admission.Interface.
func (*reviewer) Handles(admission.Operation) bool { return true }

// Validate implements admission.ValidationInterface.
func (r *reviewer) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	old := a.GetOldObject().(*api.Run)
	r.seen = append(r.seen, fmt.Sprintf("%s %s %s/%s of %s, details: %t", a.GetOperation(), a.GetResource().Resource, a.GetNamespace(), old.Name,
		a.GetUserInfo().GetName(), old.Details != nil))
	return r.err
}

func TestRunsAreDeleted(t *testing.T) {
	plugin, store := &reviewer{}, archivetest.New(endedRuns("default", 3)...)
	s := withArchive(t, store, func(c *apiserver.Config) { c.Generic.AdmissionControl = plugin })
	client := s.client(t, mediaProtobuf).Runs("default")
	left := func() int64 {
		usage, err := store.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return usage.Runs
	}
	err := client.Delete(t.Context(), "run-0000", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("other")}})
	if !apierrors.IsConflict(err) || left() != 3 {
		t.Errorf("with another UID: %v, %d runs are left", err, left())
	}
	if err := client.Delete(t.Context(), "run-0000", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || left() != 3 {
		t.Errorf("a dry run: %v, %d runs are left", err, left())
	}
	plugin.err = errors.New("keep it")
	if err := client.Delete(t.Context(), "run-0000", metav1.DeleteOptions{}); err == nil || left() != 3 {
		t.Errorf("admission refuses it: %v, %d runs are left", err, left())
	}
	plugin.err = nil
	if err := client.Delete(t.Context(), "run-0000", metav1.DeleteOptions{}); err != nil || left() != 2 {
		t.Errorf("%v, %d runs are left", err, left())
	}
	if err := client.Delete(t.Context(), "run-0000", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a run that was deleted: %v", err)
	}
	seen := "DELETE runs default/run-0000 of alice, details: true"
	if diff := cmp.Diff([]string{seen, seen, seen}, plugin.seen); diff != "" {
		t.Errorf("admission (-want +got):\n%s", diff)
	}
	w, refusal := s.send(t, http.MethodDelete, runsPath+"/run-0001", mediaJSON, []byte(`{"propagationPolicy":"Background"}`))
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || refusal != nil || status.Status != metav1.StatusSuccess || status.Details.Name != "run-0001" {
		t.Errorf("got %s, %v", w.Body, err)
	}
}

// kubectl asks for tables.
func TestTablesOfRuns(t *testing.T) {
	s := withArchive(t, archivetest.New(endedRuns("default", 3)...))
	for path, want := range map[string]int{runsPath + "?limit=2": 2, runsPath: 3, runsPath + "/run-0002": 1} {
		code, body := s.get(path, "application/json;as=Table;v=v1;g=meta.k8s.io")
		var table metav1.Table
		if err := json.Unmarshal(body, &table); err != nil || code != http.StatusOK || len(table.Rows) != want || table.ColumnDefinitions[3].Name != "State" {
			t.Errorf("%s: %d: %v: %s", path, code, err, body)
		}
		if hasNext := strings.Contains(path, "limit"); hasNext != (table.Continue != "") {
			t.Errorf("%s continues at %q", path, table.Continue)
		}
	}
}

// Everything but the requests for runs works while the archive is off, or its database away.
func TestRunsWithoutADatabase(t *testing.T) {
	away := archivetest.New()
	away.Fail(errors.New("dial postgres://admin:secret@db"))
	for want, store := range map[string]archive.Store{
		"the archive of runs is off in this server: switch it on with --archive-database":                  nil,
		"the archive database does not answer: try again later; the log of jobset-apiserver has the cause": away,
	} {
		s := withArchive(t, store)
		for _, request := range [][2]string{{http.MethodGet, s.object()}, {http.MethodGet, runsPath}, {http.MethodDelete, s.object()}} {
			_, status := s.send(t, request[0], request[1], mediaJSON, nil)
			if status == nil || status.Code != http.StatusServiceUnavailable || status.Message != want {
				t.Errorf("%v: got %+v, want %s", request, status, want)
			}
		}
		for _, path := range []string{"/apis", "/apis/archive.jobset-apiserver.io", "/apis/archive.jobset-apiserver.io/v1alpha1", "/apis/archive.jobset-apiserver.io/v1alpha1/featuregates"} {
			if code, body := s.get(path, mediaJSON); code != http.StatusOK || path == "/apis" && !strings.Contains(string(body), "archive.jobset-apiserver.io/v1alpha1") {
				t.Errorf("%s: %d: %s", path, code, body)
			}
		}
	}
}
