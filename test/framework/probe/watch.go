// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// watcher records when the watch shows what was created.
type watcher struct {
	client    rest.Interface
	namespace string
	recorder  *recorder
	// version is the version of the last event.
	version string
	cancel  context.CancelFunc
	over    chan struct{}

	mu    sync.Mutex
	added map[string][]time.Time
	// streams is how often the watch was begun, relists how often it could not go on after the last event.
	streams, relists int
}

func startWatcher(ctx context.Context, client rest.Interface, namespace string, r *recorder) *watcher {
	w := &watcher{client: client, namespace: namespace, recorder: r, added: map[string][]time.Time{}, over: make(chan struct{})}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.over)
		w.run(ctx)
	}()
	return w
}

func (w *watcher) stop() {
	w.cancel()
	<-w.over
}

// run watches until the context ends. A watch that ends is begun again after the last event.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		begin := time.Now()
		err := w.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.recorder.record(begin, err)
			select {
			case <-time.After(period):
			case <-ctx.Done():
			}
		}
	}
}

func (w *watcher) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := &metav1.ListOptions{Watch: true, ResourceVersion: w.version, AllowWatchBookmarks: true}
	if w.version == "" {
		options.ResourceVersion = "0"
	}
	// A server that has accepted a watch answers at once.
	late := time.AfterFunc(requestTimeout, cancel)
	events, err := request(w.client.Get(), w.namespace).VersionedParams(options, scheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	if !late.Stop() {
		return errors.New("the watch was not accepted in time")
	}
	w.mu.Lock()
	w.streams++
	w.mu.Unlock()
	for event := range events.ResultChan() {
		if err := w.observe(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

// relist takes what exists for what the watch would have shown, as an informer does when the server no longer has the events.
func (w *watcher) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found jobsetv1alpha2.JobSetList
	if err := request(w.client.Get(), w.namespace).Do(ctx).Into(&found); err != nil {
		return err
	}
	w.version = found.ResourceVersion
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relists++
	for i := range found.Items {
		if name := found.Items[i].Name; strings.HasPrefix(name, created) && len(w.added[name]) == 0 {
			w.added[name] = []time.Time{time.Now()}
			w.recorder.record(time.Now(), nil)
		}
	}
	return nil
}

func (w *watcher) observe(ctx context.Context, event watch.Event) error {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return w.relist(ctx)
		}
		return err
	}
	object, ok := event.Object.(*jobsetv1alpha2.JobSet)
	if !ok {
		return fmt.Errorf("the watch sent %T", event.Object)
	}
	w.version = object.ResourceVersion
	if event.Type != watch.Added || !strings.HasPrefix(object.Name, created) {
		return nil
	}
	w.recorder.record(time.Now(), nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.added[object.Name] = append(w.added[object.Name], time.Now())
	return nil
}

// wrong lists the acknowledged objects that the watch has not shown exactly once.
func (w *watcher) wrong(created map[string]time.Time) (problems []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range created {
		if seen := len(w.added[name]); seen != 1 {
			problems = append(problems, fmt.Sprintf("the watch has shown %s %d times", name, seen))
		}
	}
	return problems
}

// slowest is the longest time between the acknowledgement of a write and its event.
func (w *watcher) slowest(created map[string]time.Time) (most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, at := range created {
		if seen := w.added[name]; len(seen) > 0 {
			most = max(most, seen[0].Sub(at))
		}
	}
	return most
}
