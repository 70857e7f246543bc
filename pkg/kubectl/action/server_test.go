// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/lookups"
)

var resourceJobSets = schema.GroupResource{Group: jobsetv1alpha2.GroupName, Resource: "jobsets"}

// server answers requests for sets. Which answer depends on the name of the set: a real server decides by its state.
type server struct {
	*httptest.Server
	// got are the requests: method, path without the group, and body.
	got []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lookups.Answer(w, r, "jobsets") {
			return
		}
		path, found := strings.CutPrefix(r.URL.Path, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/")
		if !found {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
		}
		if r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		body, _ := io.ReadAll(r.Body)
		s.got = append(s.got, strings.TrimSpace(r.Method+" "+path+" "+spec(t, body)))
		code, object := answerTo(strings.Split(r.URL.Path, "/")[7:], body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// spec is the spec of a request.
func spec(t *testing.T, body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var object struct {
		metav1.TypeMeta
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		t.Errorf("body: %v", err)
	}
	return object.Kind + string(object.Spec)
}

// unmet is a Conflict with the precondition that is not met, as the server answers it.
func unmet(name string) *apierrors.StatusError {
	err := apierrors.NewConflict(resourceJobSets, name, errors.New("words for clients without flags"))
	cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.preconditions.attempt", Message: "attempt 7 is current (begun by bob)"}
	switch name {
	case "future":
		cause.Type = metav1.CauseTypeFieldValueNotFound
	case "recreated":
		cause.Field, cause.Message = "spec.preconditions.uid", "the JobSet was deleted and recreated"
	}
	err.ErrStatus.Details.Causes = []metav1.StatusCause{cause}
	return err
}

func answerTo(path []string, body []byte) (int, any) {
	name := path[0]
	fail := func(err *apierrors.StatusError) (int, any) {
		status := err.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return int(status.Code), status
	}
	switch {
	case name == "missing":
		return fail(apierrors.NewNotFound(resourceJobSets, name))
	case len(path) == 1:
		set := &jobsetv1alpha2.JobSet{TypeMeta: metav1.TypeMeta{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-1"}}
		if name != "fresh" {
			set.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 2}, {Number: 3}}
		}
		return http.StatusOK, set
	case name == "upstream":
		return fail(apierrors.NewNotFound(resourceJobSets, name))
	case name == "finished":
		return fail(apierrors.NewConflict(resourceJobSets, name, errors.New("the JobSet has completed; there is nothing to do")))
	case slices.Contains([]string{"outdated", "future", "recreated"}, name):
		return fail(unmet(name))
	case name == "invalid":
		return fail(apierrors.NewInvalid(batchv1alpha1.SchemeGroupVersion.WithKind("JobSetRestart").GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicatedJob"), "x", "must be the name of a replicatedJob of the JobSet: w"),
			field.Invalid(field.NewPath("spec", "jobIndex"), 7, "must be less"),
		}))
	case name == "denied": // as the library answers when a policy denies
		denial := "ValidatingAdmissionPolicy 'frozen' with binding 'all' denied request: not on Fridays"
		err := apierrors.NewForbidden(resourceJobSets, name, errors.New(denial))
		err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: denial}}
		return fail(err)
	case name == "forbidden":
		return fail(apierrors.NewForbidden(resourceJobSets, name, errors.New("not yours")))
	}
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil {
		return http.StatusBadRequest, nil
	}
	answer["status"] = map[string]any{"uid": "u-1", "attempt": 4, "user": "alice", "time": "2026-11-20T12:00:00.000000Z", "message": "done"}
	if name == "joined" {
		answer["status"] = map[string]any{"uid": "u-1", "attempt": 3, "message": "attempt 3, requested 3s ago by bob, is not ready yet; not restarted again; set spec.force to restart it"}
	}
	if name == "already" {
		answer["status"] = map[string]any{"uid": "u-1", "message": "the JobSet is so already"}
	}
	return http.StatusCreated, answer
}
