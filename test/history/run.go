// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
)

// Options say who does how much.
type Options struct {
	// Config reaches the server, and Namespace is where the objects are. Nothing else may write JobSets there.
	Config    *rest.Config
	Namespace string
	// Clients work on so many Objects, each with a pause of at most Pause after each request.
	Clients, Objects int
	Pause            time.Duration
	// Watchers watch them.
	Watchers int
	// Timeout is how long a client waits for an answer, and Recovery how long it may take at the end until the server
	// answers again and all watchers saw everything.
	Timeout, Recovery time.Duration
	// Seed is the seed of all choices.
	Seed uint64
}

// Defaults are 30 clients that collide on 8 objects.
func Defaults(config *rest.Config, namespace string, seed uint64) Options {
	return Options{
		Config: config, Namespace: namespace, Seed: seed, Clients: 30, Objects: 8, Watchers: 4,
		Pause: 150 * time.Millisecond, Timeout: 4 * time.Second, Recovery: 2 * time.Minute,
	}
}

// Run is a history in the making.
type Run struct {
	Options
	begin    time.Time
	stop     context.CancelFunc
	clients  []*client
	watchers []*watcher
	working  sync.WaitGroup
	watching sync.WaitGroup
	unwatch  context.CancelFunc
}

// Start starts the clients and the watchers. They work until Finish is called.
func Start(ctx context.Context, options Options) (*Run, error) {
	r := &Run{Options: options, begin: time.Now()}
	working, stop := context.WithCancel(ctx)
	watching, unwatch := context.WithCancel(ctx)
	r.stop, r.unwatch = stop, unwatch
	for i := range options.Clients + 1 {
		jobSets, err := r.connect(i%2 == 1)
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, &client{Run: r, number: i, jobSets: jobSets, dice: r.dice(i), known: map[string]State{}})
	}
	for i := range options.Watchers {
		jobSets, err := r.connect(i%2 == 1)
		if err != nil {
			return nil, err
		}
		r.watchers = append(r.watchers, &watcher{Run: r, jobSets: jobSets, dice: r.dice(-1 - i), streams: i%4 >= 2})
	}
	for _, w := range r.watchers {
		r.watching.Go(func() { w.work(watching) })
	}
	// The last client is the one that ends the history.
	for _, c := range r.clients[:options.Clients] {
		r.working.Go(func() { c.work(working) })
	}
	return r, nil
}

func (r *Run) dice(number int) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, uint64(number))) //nolint:gosec // choices, not secrets
}

// connect returns a client that asks once: one that repeats a request by itself does not know which of them was answered.
func (r *Run) connect(protobuf bool) (typedv1alpha2.JobSetInterface, error) {
	config := rest.CopyConfig(r.Config)
	config.QPS = -1
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clients.JobsetV1alpha2().JobSets(r.Namespace), nil
}

// once takes away what makes clients of Kubernetes repeat requests.
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// now is the time since the begin of the history, from a clock that does not jump.
func (r *Run) now() time.Duration { return time.Since(r.begin) }

// Acknowledged returns how many requests of any kind were answered so far, to know that clients work.
func (r *Run) Acknowledged() int {
	n := 0
	for _, c := range r.clients {
		n += int(c.answered.Load())
	}
	return n
}

// AwaitAnswers waits until clients got so many more answers.
func (r *Run) AwaitAnswers(ctx context.Context, more int, timeout time.Duration) error {
	want := r.Acknowledged() + more
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		return r.Acknowledged() >= want, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d answers, have %d: %w", want, r.Acknowledged(), err)
	}
	return nil
}

// Finish ends the clients, writes an object that all watchers must see, and reads all objects.
func (r *Run) Finish(ctx context.Context) (*History, error) {
	defer r.unwatch()
	r.stop()
	r.working.Wait()
	h := &History{Seed: r.Seed, Duration: r.now()}
	last := r.clients[r.Clients]
	ctx, cancel := context.WithTimeout(ctx, r.Recovery)
	defer cancel()
	fence, err := last.until(ctx, func(attempt int) Operation {
		return Operation{Kind: Create, Object: fmt.Sprintf("fence-%d", attempt)}
	})
	if err != nil {
		return nil, err
	}
	final, err := last.until(ctx, func(int) Operation { return Operation{Kind: List} })
	if err != nil {
		return nil, err
	}
	_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(r.watchers, func(w *watcher) bool { return w.reached() < fence.State.Version }), nil
	})
	for i, w := range r.watchers {
		if w.reached() < fence.State.Version {
			h.Unfinished = append(h.Unfinished, i)
		}
	}
	r.unwatch()
	r.watching.Wait()
	for _, c := range r.clients {
		h.Operations = append(h.Operations, c.operations...)
	}
	slices.SortStableFunc(h.Operations, func(a, b Operation) int { return cmp.Compare(a.Start, b.Start) })
	for _, w := range r.watchers {
		h.Watchers = append(h.Watchers, w.Watcher)
	}
	h.Final = &final
	return h, nil
}
