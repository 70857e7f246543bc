// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
	cborType     = "application/cbor"
	jsonPatch    = "application/json-patch+json"
	mergePatch   = "application/merge-patch+json"
	strategic    = "application/strategic-merge-patch+json"
	applyPatch   = "application/apply-patch+yaml"
	applyCBOR    = "application/apply-patch+cbor"
)

// attack is one hostile request, or many of one kind.
type attack struct {
	name string
	// full attacks take long, and are left out of the small run.
	full bool
	// held attacks go on while the plain JobSet runs.
	held bool
	// tells means that a held attack tells the environment when it is under way.
	tells bool
	// beside is another thing that must work while a held attack goes on.
	beside func(ctx context.Context, e *env) error
	send   func(ctx context.Context, e *env) answer
}

// answer is what became of an attack.
type answer struct {
	// what is the status code, or why there was none.
	what           string
	sent, received int64
}

// request is one HTTP request to the path of the JobSets of the hostile namespace, or of objects of another resource.
type request struct {
	resource                  string
	method, path, contentType string
	query                     url.Values
	header                    map[string]string
	body                      func() []byte
	// stream replaces the body by one of unknown length.
	stream func() io.Reader
}

// one sends the request once.
func (r request) one(ctx context.Context, e *env) answer {
	var body io.Reader
	var a answer
	switch {
	case r.stream != nil:
		body = &counted{r.stream(), &a.sent}
	case r.body != nil:
		content := r.body()
		body, a.sent = bytes.NewReader(content), int64(len(content))
	}
	target := e.url + r.path
	if r.resource != "" {
		target = e.urls[r.resource] + r.path
	}
	if r.query != nil {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		a.what = err.Error()
		return a
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	for key, value := range r.header {
		req.Header.Set(key, value)
	}
	response, err := e.client.Do(req)
	if err != nil {
		a.what = brief(err)
		return a
	}
	defer response.Body.Close()
	a.what = fmt.Sprint(response.StatusCode)
	a.received, err = io.Copy(io.Discard, response.Body)
	if err != nil && ctx.Err() == nil {
		a.what += ", cut off: " + brief(err)
	}
	return a
}

// brief is the innermost part of an error, without the URL, which may be a megabyte.
func brief(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	text := err.Error()
	return text[:min(len(text), 60)]
}

type counted struct {
	io.Reader
	n *int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

// tally counts the answers to requests that are sent at the same time.
type tally struct {
	mu    sync.Mutex
	codes map[string]int
	all   answer
}

func (t *tally) add(a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.codes == nil {
		t.codes = map[string]int{}
	}
	t.codes[a.what]++
	t.all.sent, t.all.received = t.all.sent+a.sent, t.all.received+a.received
}

// total returns all answers as one, those that came most often first.
func (t *tally) total() answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, code := range slices.SortedFunc(maps.Keys(t.codes), func(a, b string) int { return t.codes[b] - t.codes[a] }) {
		parts = append(parts, fmt.Sprintf("%d × %s", t.codes[code], code))
	}
	return answer{strings.Join(parts[:min(len(parts), 5)], ", "), t.all.sent, t.all.received}
}

// parallel sends the request n times at the same time.
func (r request) parallel(n int) func(context.Context, *env) answer {
	return func(ctx context.Context, e *env) answer {
		var all tally
		var group sync.WaitGroup
		for range n {
			group.Go(func() { all.add(r.one(ctx, e)) })
		}
		group.Wait()
		return all.total()
	}
}

// create posts a body.
func create(name, contentType string, body func() []byte) attack {
	return attack{name: name, send: request{method: http.MethodPost, contentType: contentType, body: body}.one}
}

// createJSON posts JSON.
func createJSON(name string, body func() []byte) attack { return create(name, jsonType, body) }

// patch patches the set that is there before each attack.
func patch(name, contentType string, body func() []byte) attack {
	query := url.Values{}
	if strings.Contains(contentType, "apply") {
		query = url.Values{"fieldManager": {"hostile"}, "force": {"true"}}
	}
	return attack{name: name, send: request{method: http.MethodPatch, path: "/" + victim, contentType: contentType, query: query, body: body}.one}
}

// action posts a request to a subresource of the set that is there before each attack.
func action(name, subresource string, body func() []byte) attack {
	return attack{name: name, send: request{method: http.MethodPost, path: "/" + victim + "/" + subresource, contentType: jsonType, body: body}.one}
}

// list reads with a query.
func list(name, method string, query func() url.Values) attack {
	return attack{name: name, send: func(ctx context.Context, e *env) answer {
		r := request{method: method, query: query()}
		a := r.one(ctx, e)
		a.sent = int64(len(r.query.Encode()))
		return a
	}}
}

// onlyFull leaves the attack out of the small run.
func onlyFull(a attack) attack {
	a.full = true
	return a
}
