// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewind makes informers list again after the API that they watch has gone back to an earlier state, because its etcd was restored. A watch that begins at
// a resource version of the future is silent until the API has that version again, and what the informer knows stays that of the lost time: Jobs that are gone are
// taken for running. Kubernetes asks administrators to restart all clients then; ours notice it themselves. See docs/operations/backup.md.
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// maxList bounds the answer to a list of one object without its content.
const maxList = 4 << 20

// Wrap makes clients of the configuration ask for the version that a resource is at before they go on with a watch of it, if a request has failed since the
// watch before: an API that is restored has been away. It costs nothing while requests succeed. Wrappers that repeat requests must be added later.
func Wrap(config *rest.Config) {
	t := &tracker{checked: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{t, next} })
}

// tracker is shared by all clients of a configuration.
type tracker struct {
	mu sync.Mutex
	// failures is how many requests have failed, and checked how many had when the version of a path was last compared.
	failures int
	checked  map[string]int
	// restored is how many requests had failed when the API was last seen to be restored.
	restored int
}

func (t *tracker) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures++
}

// due returns whether the version of a path is to be compared, and whether the API is known to be restored since it was. It may have come to the version of the
// path again meanwhile.
func (t *tracker) due(path string) (failures int, due, restored bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failures, t.checked[path] < t.failures, t.checked[path] < t.restored
}

// compared remembers that a path was compared, and what that said.
func (t *tracker) compared(path string, failures int, restored bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked[path] = max(t.checked[path], failures)
	if restored {
		t.restored = max(t.restored, failures)
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
		if failures, due, restored := t.due(req.URL.Path); restored {
			t.compared(req.URL.Path, failures, false)
			return expired(req, fmt.Sprintf("the resource version %d is of the time before the API was restored", version))
		} else if due {
			response, err := t.compare(req, version, failures)
			if response != nil || err != nil {
				return response, err
			}
			t.compared(req.URL.Path, failures, false)
		}
	}
	return t.send(req)
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(req)
	if err != nil && !errors.Is(err, context.Canceled) || err == nil && response.StatusCode >= http.StatusInternalServerError {
		t.failed()
	}
	return response, err
}

// watchesFrom returns the version from which a request watches; 0 if it does not, or if it begins with a list.
func watchesFrom(req *http.Request) uint64 {
	query := req.URL.Query()
	if watch, err := strconv.ParseBool(query.Get("watch")); req.Method != http.MethodGet || err != nil || !watch || query.Get("sendInitialEvents") == "true" {
		return 0
	}
	version, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// compare returns nothing if the watch can begin, and otherwise the answer to it.
func (t *transport) compare(req *http.Request, version uint64, failures int) (*http.Response, error) {
	list := req.Clone(req.Context())
	query := list.URL.Query()
	for _, parameter := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "sendInitialEvents", "resourceVersionMatch", "resourceVersion"} {
		query.Del(parameter)
	}
	query.Set("limit", "1")
	list.URL.RawQuery = query.Encode()
	list.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	response, err := t.send(list)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= http.StatusInternalServerError:
		return response, nil // the watch would not begin either
	case response.StatusCode != http.StatusOK:
		return nil, response.Body.Close() // who may not list can know nothing of the version
	}
	defer response.Body.Close()
	var current metav1.PartialObjectMetadataList
	if err := json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(&current); err != nil {
		return nil, fmt.Errorf("reading the version of %s: %w", req.URL.Path, err)
	}
	at, err := strconv.ParseUint(current.ResourceVersion, 10, 64)
	if err != nil || at >= version {
		return nil, nil // versions of other APIs may be no numbers
	}
	klog.FromContext(req.Context()).Info("The API is at an earlier version than the one that was watched: its storage was restored. Listing again",
		"path", req.URL.Path, "watched", version, "current", at)
	t.compared(req.URL.Path, failures, true)
	return expired(req, fmt.Sprintf("the resource version %d is of the time before the API was restored; it is at %d", version, at))
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
		Status: fmt.Sprintf("%d %s", http.StatusGone, http.StatusText(http.StatusGone)), StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}
