// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// enough is the number of histories in which a defect must show. The pauses of client-go are random, so that a seed
// does not decide whether it shows. The rarest defect shows in one of 18 histories, so that all of these hide it less
// than once in a million runs. The search ends with the first history that shows it.
const enough = 1000

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	podsReady, finished := sends("apply", "workloads", `"PodsReady"`), sends("apply", "workloads", `"Finished"`)
	newHistories(t).ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"a Workload that is never marked as finished":    {Mutant: swallowing(finished), Rules: []string{ruleReleased}},
		"a finalizer that stays":                         {Mutant: swallowing(sends("patch", "workloads", `"finalizers"`)), Rules: []string{ruleReleased, ruleRuns}},
		"a Workload that is never deactivated":           {Mutant: swallowing(sends("patch", "workloads", `"active":false`)), Rules: []string{ruleFollows}},
		"a Workload that is never activated":             {Mutant: swallowing(sends("patch", "workloads", `"active":true`)), Rules: []string{ruleRuns}},
		"an eviction that is never answered":             {Mutant: swallowing(sends("patch", "workloads", `"admission":null`)), Rules: []string{ruleRuns, ruleFollows}},
		"a step that is never started again":             {Mutant: swallowing(sends("patch", "jobs", `"/spec/suspend","value":false`)), Rules: []string{ruleRuns}},
		"quota that is given back while a step runs":     {Mutant: rewriting(podsReady, `"PodsReady","status":"True"`, `"Finished","status":"True"`), Rules: []string{ruleInUse}},
		"changes of any version of a Workload":           {Mutant: rewriting(sends("", "workloads", `"resourceVersion"`), `"resourceVersion"`, `"_"`), Rules: []string{ruleVersion}},
		"a Workload that its sequence does not find":     {Mutant: mutant{otherNames}, Rules: []string{ruleOnce}},
		"a sequence that is never known to be gone":      {Mutant: mutant{neverGone}, Rules: []string{ruleReleased}},
		"a step that asks for no quota":                  {Mutant: misreading("sequentialjobs", "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/queue_name"), Rules: []string{ruleQuota}},
		"refused changes of Workloads that are no error": {Mutant: mutant{careless}, Rules: []string{ruleReleased, ruleRuns, ruleFollows}},
	})
}

// request returns the verb, resource and body of a request, which can still be sent.
func request(r *http.Request) (verb, resource string, body []byte) {
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	switch kind := r.Header.Get("Content-Type"); {
	case r.Method == http.MethodPatch && strings.Contains(kind, "apply-patch"):
		verb = "apply"
	default:
		verb = strings.ToLower(r.Method)
	}
	for _, resource := range []string{"workloads", "sequentialjobs", "jobs"} {
		if strings.Contains(r.URL.Path, "/"+resource) {
			return verb, resource, body
		}
	}
	return verb, "", body
}

// sends returns whether a request is of a verb, if it is not empty, for a resource, with a text in it.
func sends(verb, resource, text string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		v, to, body := request(r)
		return (verb == "" || v == verb) && to == resource && bytes.Contains(body, []byte(text))
	}
}

// done is the answer to a request that is not carried out.
func done(body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// swallowing does not carry out such requests.
func swallowing(such func(*http.Request) bool) mutant {
	return mutant{func(_ *env, next http.RoundTripper) http.RoundTripper {
		return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if such(r) {
				_, resource, _ := request(r)
				if resource == "jobs" {
					return done(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"resourceVersion":"1"}}`), nil
				}
				return done(`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{}}`), nil
			}
			return next.RoundTrip(r)
		})
	}}
}

// rewriting sends another text in such requests.
func rewriting(such func(*http.Request) bool, text, instead string) mutant {
	return mutant{func(_ *env, next http.RoundTripper) http.RoundTripper {
		return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if such(r) {
				_, _, body := request(r)
				r = r.Clone(r.Context())
				body = bytes.Replace(body, []byte(text), []byte(instead), 1)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return next.RoundTrip(r)
		})
	}}
}

// misreading reads another text, of the same length, in the lists and watches of a resource.
func misreading(resource, text, instead string) mutant {
	return mutant{func(_ *env, next http.RoundTripper) http.RoundTripper {
		return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
			verb, of, _ := request(r)
			response, err := next.RoundTrip(r)
			if err == nil && verb == "get" && of == resource {
				response.Body = misread{response.Body, []byte(text), []byte(instead)}
			}
			return response, err
		})
	}}
}

type misread struct {
	io.ReadCloser
	text, instead []byte
}

func (m misread) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], m.text, m.instead))
	return n, err
}

// neverGone cannot read a sequence.
func neverGone(_ *env, next http.RoundTripper) http.RoundTripper {
	return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/sequentialjobs/"+name) {
			return nil, io.ErrUnexpectedEOF
		}
		return next.RoundTrip(r)
	})
}

// otherNames creates each Workload under another name.
func otherNames(_ *env, next http.RoundTripper) http.RoundTripper {
	var n atomic.Int32
	return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if n.Load() < 3 && sends("post", "workloads", "")(r) { // without time in between
			_, _, body := request(r)
			r = r.Clone(r.Context())
			body = bytes.Replace(body, []byte(`"name":"sequentialjob-`), fmt.Appendf(nil, `"name":"other%d-`, n.Add(1)), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return next.RoundTrip(r)
	})
}

func changesWorkload(r *http.Request) bool {
	verb, resource, _ := request(r)
	return resource == "workloads" && verb != "get"
}

// careless takes refused changes of Workloads for done.
func careless(_ *env, next http.RoundTripper) http.RoundTripper {
	return memory.RoundTripper(func(r *http.Request) (*http.Response, error) {
		changes := changesWorkload(r)
		response, err := next.RoundTrip(r)
		if changes && r.Context().Err() == nil && (err != nil || response.StatusCode >= http.StatusBadRequest) {
			return done(`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{}}`), nil
		}
		return response, err
	})
}
