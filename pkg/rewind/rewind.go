// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewind makes informers list again after the API that they watch has gone back to an earlier state, because
// its etcd was restored. A watch that begins at a resource version of the future is silent until the API has that
// version again, and what the informer knows stays that of the lost time: Jobs that are gone are taken for running.
// Kubernetes asks administrators to restart all clients then; our clients notice it themselves. See docs/operations/backup.md.
package rewind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// maxList bounds the answer to a list of one object without its content.
const maxList = 4 << 20

// watchesBegin is within which time after a failure all watches begin again: their timeouts are at most ten minutes.
const watchesBegin = 15 * time.Minute

// Wrap makes clients of the configuration ask for the version that a resource is at before they go on with a watch of
// it, if a request has failed since the watch before: an API that is restored has been away. It costs nothing while
// requests succeed. Who watches must be allowed to list, as informers are: a watch is refused as long as the question
// is. Wrappers that repeat requests must be added later. A restore after which the API comes to the version of a watch
// again before that watch begins is not noticed.
func Wrap(config *rest.Config) { config.Wrap(Wrapper()) }

// Wrapper returns what Wrap adds to a configuration. The clients that get the same one share what they find out.
func Wrapper() func(http.RoundTripper) http.RoundTripper { return wrapper(clock.RealClock{}) }

func wrapper(c clock.PassiveClock) func(http.RoundTripper) http.RoundTripper {
	t := &tracker{clock: c, passed: map[string]mark{}}
	return func(next http.RoundTripper) http.RoundTripper { return &transport{t, next} }
}

// tracker is shared by all clients of a configuration.
type tracker struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// failures is how many requests have failed, and failed when the last one did.
	failures int
	failed   time.Time
	// passed is what is known of a path, of which there may be several watches.
	passed map[string]mark
}

// mark is the version at which the API was after so many failures.
type mark struct {
	failures int
	version  uint64
}

func (t *tracker) fail() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures++
	t.failed = t.clock.Now()
}

// due returns whether a watch must be compared with the version that the API is at, and the failures that the comparison is about.
func (t *tracker) due(path string, version uint64) (failures int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.passed[path]
	return t.failures, known.failures < t.failures || version > known.version && t.failures > 0 && t.clock.Since(t.failed) < watchesBegin
}

func (t *tracker) pass(path string, m mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.passed[path]; known.failures < m.failures || known.version < m.version {
		t.passed[path] = m
	}
}

type transport struct {
	*tracker
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if version := watchesFrom(req); version > 0 {
		if failures, due := t.due(req.URL.Path, version); due {
			at, response, err := t.compare(req, version)
			if response != nil || err != nil {
				return response, err
			}
			t.pass(req.URL.Path, mark{failures, at})
		}
	}
	return t.send(req)
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(req)
	if err != nil && !errors.Is(err, context.Canceled) || err == nil && response.StatusCode >= http.StatusInternalServerError {
		t.fail()
	}
	return response, err
}

// watchesFrom returns the version from which a request watches; 0 if it does not, or if it begins with a list.
func watchesFrom(req *http.Request) uint64 {
	query := req.URL.Query()
	if watch, err := strconv.ParseBool(query.Get("watch")); req.Method != http.MethodGet || err != nil || !watch ||
		query.Get("sendInitialEvents") == "true" {
		return 0
	}
	version, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// compare returns the version that the API is at if the watch can begin, and otherwise the answer to it. A version that
// is no number cannot be compared, and is taken for that of the watch.
func (t *transport) compare(req *http.Request, version uint64) (at uint64, answer *http.Response, err error) {
	list := req.Clone(req.Context())
	query := list.URL.Query()
	for _, parameter := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "sendInitialEvents", "resourceVersionMatch",
		"resourceVersion"} {
		query.Del(parameter)
	}
	query.Set("limit", "1")
	list.URL.RawQuery = query.Encode()
	list.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	response, err := t.send(list)
	if err != nil {
		return 0, nil, err
	}
	if response.StatusCode != http.StatusOK {
		// kube-apiserver may refuse this list and allow the watch that follows it: it answers before it knows all roles.
		return 0, response, nil
	}
	defer response.Body.Close()
	var current metav1.PartialObjectMetadataList
	if err := json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(&current); err != nil {
		return 0, nil, fmt.Errorf("reading the version of %s: %w", req.URL.Path, err)
	}
	at, err = strconv.ParseUint(current.ResourceVersion, 10, 64)
	if err != nil {
		return version, nil, nil // versions of other APIs may be no numbers
	}
	if at >= version {
		return at, nil, nil
	}
	klog.FromContext(req.Context()).Info("The API is at an earlier version than the one that was watched: its storage was restored. "+
		"Listing again",
		"path", req.URL.Path, "watched", version, "current", at)
	answer, err = expired(req, fmt.Sprintf("the resource version %d is of the time before the API was restored; it is at %d", version, at))
	return 0, answer, err
}

// expired is the answer to a watch from a version that there is not.
func expired(req *http.Request, message string) (*http.Response, error) {
	status := apierrors.NewResourceExpired(message).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", http.StatusGone, http.StatusText(http.StatusGone)), StatusCode: http.StatusGone, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: req,
	}, nil
}
