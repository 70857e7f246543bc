// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
)

const path = "/mutate"

// review is a question as kube-apiserver sends it. Its object has a field that the types of this release do not know.
func review(change func(map[string]any)) []byte {
	request := map[string]any{
		"uid": "1234", "operation": "CREATE", "namespace": "default", "name": "pod-0",
		"kind": map[string]any{"group": "", "version": "v1", "kind": "Pod"}, "resource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
		"object": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod-0"}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "fromTheFuture": true}},
		}},
	}
	if change != nil {
		change(request)
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		panic(err)
	}
	return body
}

// send sends a question and returns the answer.
func send(h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, body)
	req.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, req)
	return w
}

func answered(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionReview {
	t.Helper()
	got := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d: %s (%v)", w.Code, w.Body, err)
	}
	if got.Kind != "AdmissionReview" || got.APIVersion != "admission.k8s.io/v1" || got.Request != nil || got.Response == nil || got.Response.UID != "1234" {
		t.Fatalf("the answer is no review of the request: %s", w.Body)
	}
	return got
}

// labels is a webhook that sets a label and the environment.
func labels(pod *corev1.Pod, namespace string) error {
	pod.Labels = map[string]string{"a/namespace~": namespace}
	pod.Spec.Containers[0].Env = append([]corev1.EnvVar{{Name: "FIRST", Value: ""}}, pod.Spec.Containers[0].Env...)
	return nil
}

func TestAnswer(t *testing.T) {
	cases := map[string]struct {
		mutate  func(*corev1.Pod, string) error
		patch   string
		allowed bool
		message string
	}{
		"a pod that changes": {mutate: labels, allowed: true, patch: `[{"op":"add","path":"/metadata/labels","value":{"a/namespace~":"default"}},` +
			`{"op":"add","path":"/spec/containers/0/env","value":[{"name":"FIRST"}]}]`},
		"a pod that stays as it is": {mutate: func(*corev1.Pod, string) error { return nil }, allowed: true},
		"a pod that is refused": {
			mutate: func(pod *corev1.Pod, _ string) error {
				pod.Name = "other"
				return errors.New("the size must be a number")
			}, message: "the size must be a number",
		},
		"a long reason": {
			mutate: func(*corev1.Pod, string) error { return errors.New(strings.Repeat("x", 1<<20)) }, message: strings.Repeat("x", maxMessage-3) + "...",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(http.NotFoundHandler(), Callers{}, Webhook{Path: path, Mutate: c.mutate})
			got := answered(t, send(h, bytes.NewReader(review(nil)))).Response
			if got.Allowed != c.allowed || string(got.Patch) != c.patch || (got.PatchType != nil) != (c.patch != "") {
				t.Errorf("allowed %v, want %v, patch %s, want %s", got.Allowed, c.allowed, got.Patch, c.patch)
			}
			if c.allowed != (got.Result == nil) || got.Result != nil && (got.Result.Message != c.message || got.Result.Code != http.StatusForbidden) {
				t.Errorf("the result is %v, want message %q", got.Result, c.message)
			}
		})
	}
}

// TestUnknownFieldsStay shows that a pod of a newer kube-apiserver loses nothing.
func TestUnknownFieldsStay(t *testing.T) {
	h := NewHandler(http.NotFoundHandler(), Callers{}, Webhook{Path: path, Mutate: labels})
	question := review(func(request map[string]any) {
		container := request["object"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		container["env"] = []any{map[string]any{"name": "NEW", "valueFrom": map[string]any{"someRef": map[string]any{"key": "k"}}}}
	})
	var sent struct {
		Request struct{ Object json.RawMessage }
	}
	if err := json.Unmarshal(question, &sent); err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(answered(t, send(h, bytes.NewReader(question))).Response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(sent.Request.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"fromTheFuture":true`, `{"name":"FIRST"},{"name":"NEW","valueFrom":{"someRef":{"key":"k"}}}`} {
		if !strings.Contains(string(patched), want) {
			t.Errorf("the pod must have %s, is %s", want, patched)
		}
	}
}

func TestBadRequests(t *testing.T) {
	set := func(key string, value any) []byte { return review(func(r map[string]any) { r[key] = value }) }
	cases := map[string]struct {
		body []byte
		code int
		want string
	}{
		"no body":            {nil, http.StatusBadRequest, "must be an AdmissionReview"},
		"no JSON":            {[]byte("{"), http.StatusBadRequest, "must be an AdmissionReview in JSON"},
		"a list":             {[]byte("[]"), http.StatusBadRequest, "must be an AdmissionReview in JSON"},
		"another type":       {bytes.Replace(review(nil), []byte("admission.k8s.io/v1"), []byte("admission.k8s.io/v1beta1"), 1), http.StatusBadRequest, "AdmissionReview of admission.k8s.io/v1"},
		"no request":         {[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), http.StatusBadRequest, "with a request that has a uid"},
		"no uid":             {set("uid", ""), http.StatusBadRequest, "with a request that has a uid"},
		"another kind":       {set("kind", map[string]any{"version": "v1", "kind": "Secret"}), http.StatusBadRequest, "must be about the creation of a pod"},
		"another resource":   {set("resource", map[string]any{"version": "v1", "resource": "secrets"}), http.StatusBadRequest, "must be about the creation of a pod"},
		"a subresource":      {set("subResource", "status"), http.StatusBadRequest, "must be about the creation of a pod"},
		"an update":          {set("operation", "UPDATE"), http.StatusBadRequest, "must be about the creation of a pod"},
		"no object":          {set("object", nil), http.StatusBadRequest, "must be a pod in JSON"},
		"an object of lists": {set("object", []any{}), http.StatusBadRequest, "must be a pod in JSON"},
		"a wrong field":      {set("object", map[string]any{"spec": 1}), http.StatusBadRequest, "must be a pod in JSON"},
		"10 MiB":             {bytes.Repeat([]byte(" "), 10<<20), http.StatusRequestEntityTooLarge, "no more than 3145728 bytes"},
		"deep lists":         {bytes.Repeat([]byte("["), 1<<20), http.StatusRequestEntityTooLarge, "levels of objects and lists"},
		"deep objects":       {bytes.Repeat([]byte(`{"a":`), 1<<19), http.StatusRequestEntityTooLarge, "levels of objects and lists"},
		"many objects":       {[]byte("[" + strings.Repeat("{},", 1<<19) + "{}]"), http.StatusRequestEntityTooLarge, "the body must have no more than"},
	}
	h := NewHandler(http.NotFoundHandler(), Callers{}, Webhook{Path: path, Mutate: labels})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := send(h, bytes.NewReader(c.body))
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("answered %d %q, want %d %q", w.Code, w.Body, c.code, c.want)
			}
			// The same without an announced length.
			if w := send(h, io.MultiReader(bytes.NewReader(c.body))); w.Code != c.code {
				t.Errorf("answered %d %q without a length, want %d", w.Code, w.Body, c.code)
			}
		})
	}
}

func TestOtherMethodsAndTypes(t *testing.T) {
	h := NewHandler(http.NotFoundHandler(), Callers{}, Webhook{Path: path, Mutate: labels})
	cases := map[string]struct {
		method, path, media string
		code                int
	}{
		"GET":            {http.MethodGet, path, "application/json", http.StatusMethodNotAllowed},
		"PUT":            {http.MethodPut, path, "application/json", http.StatusMethodNotAllowed},
		"YAML":           {http.MethodPost, path, "application/yaml", http.StatusUnsupportedMediaType},
		"no type":        {http.MethodPost, path, "", http.StatusUnsupportedMediaType},
		"with a charset": {http.MethodPost, path, "application/json; charset=utf-8", http.StatusOK},
		"another path":   {http.MethodPost, path + "/", "application/json", http.StatusNotFound},
		"a path below":   {http.MethodPost, path + "/x", "application/json", http.StatusNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, req := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, bytes.NewReader(review(nil)))
			req.Header.Set("Content-Type", c.media)
			h.ServeHTTP(w, req)
			if w.Code != c.code {
				t.Errorf("answered %d, want %d", w.Code, c.code)
			}
		})
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	h := NewHandler(http.NotFoundHandler(), Callers{}, Webhook{Path: path, Mutate: func(*corev1.Pod, string) error { panic("secret") }})
	before := count(t, resultPanic)
	w := send(h, bytes.NewReader(review(nil)))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
	if got := count(t, resultPanic) - before; got != 1 {
		t.Errorf("%v panics counted, want 1", got)
	}
	if w := send(h, bytes.NewReader(review(nil))); w.Code != http.StatusInternalServerError {
		t.Errorf("the next answer is %d", w.Code)
	}
}

func count(t *testing.T, r result) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(requests.WithLabelValues(string(r)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestRequestsAreBounded holds all turns, so that a question finds none.
func TestRequestsAreBounded(t *testing.T) {
	h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
	turns := h.queue.Free()
	for range turns {
		if !h.queue.Enter(0, 1).Wait(t.Context()) {
			t.Fatal(t.Context().Err())
		}
	}
	h.timeout = time.Millisecond
	before := count(t, resultBusy)
	if w := send(h, bytes.NewReader(review(nil))); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d, want 503", w.Code)
	}
	if got := count(t, resultBusy) - before; got != 1 {
		t.Errorf("%v requests counted as busy, want 1", got)
	}
	for range turns {
		h.queue.Release(0, 1)
	}
	h.timeout = time.Minute
	answered(t, send(h, bytes.NewReader(review(nil))))
	if h.queue.Free() != turns || h.shares.open != 0 {
		t.Errorf("%d turns are free, want %d; %d questions are open", h.queue.Free(), turns, h.shares.open)
	}
}

// TestSlowClients shows that a client that announces a body and does not send it is not waited for.
func TestSlowClients(t *testing.T) {
	h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
	h.timeout, h.receiving = 50*time.Millisecond, 50*time.Millisecond
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	body, end := io.Pipe()
	defer end.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest || response.ProtoMajor != 2 {
		t.Errorf("answered %d over %s, want 400 over HTTP/2", response.StatusCode, response.Proto)
	}
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	if h.shares.open != 0 {
		t.Errorf("%d questions are open after the answer", h.shares.open)
	}
}
