// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers holds the caches that the controllers of all kinds share. A kind declares what it needs: resources,
// labels, and a transform that returns the fields to keep. Kinds that need the same objects share one watch and one cache,
// in which each has its own part of an object; a cache of a single kind holds nothing but that part. Watches wait together for a
// server that is away.
package informers

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
)

const (
	// minPause and maxPause are about how long a list or watch waits before it looks again whether its server answers. Five
	// seconds after the server is back all caches follow it again; a reflector alone waits for up to a minute by then.
	minPause, maxPause = time.Second, 2 * time.Second
	// maxFailurePause is the pause of a list or watch that keeps failing although the server answers.
	maxFailurePause = 4 * time.Second
	// probeTimeout ends a question to a server that does not answer.
	probeTimeout = 2 * time.Second
	// reportEvery is how often a server that does not answer is reported.
	reportEvery = 30 * time.Second
)

// Server is an API server that may be away for some time. Lists and watches that fail meanwhile wait here, instead of in
// the growing pauses of their reflectors. One of them at a time asks a small question, once a second at most; when that is
// answered, all try again.
type Server struct {
	name  string
	probe func(context.Context) error
	// admit is asked before each request; nil if nothing is.
	admit func(context.Context) error
	ended context.Context
	end   context.CancelFunc

	mu sync.Mutex
	// asked is when the last question was sent, answered when the last one was that got an answer, and reported when the
	// log last said that there is none.
	asked, answered, reported time.Time
	// asking is closed when the question that is under way has been answered; nil if none is.
	asking chan struct{}
	// away means that requests fail, servedSince is since when they no longer do, or since the first one, and returned is
	// called when they no longer do.
	away        bool
	servedSince time.Time
	returned    []func()
}

// newServer returns a server, by its name in the log and a question that it answers when it serves.
func newServer(name string, probe func(context.Context) error) *Server {
	s := &Server{name: name, probe: probe}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// stop lets all that wait fail. A reflector does not end the context of its lists when it is stopped.
func (s *Server) stop() { s.end() }

// ServedSince returns since when the server is served without interruption, as far as this process has seen; zero if it
// is not served. For a process that has just begun that is its first answer: the server may have been away until then.
func (s *Server) ServedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return time.Time{}
	}
	return s.servedSince
}

// OnReturn adds what is called each time the server is served again, before the watches are started. It returns soon.
func (s *Server) OnReturn(do func()) { s.returned = append(s.returned, do) }

// fails notes that a request failed.
func (s *Server) fails() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
}

// answers notes that a request did not fail.
func (s *Server) answers() {
	s.mu.Lock()
	returns := s.away
	if returns || s.servedSince.IsZero() {
		s.away, s.servedSince = false, time.Now()
	}
	s.mu.Unlock()
	if returns {
		for _, do := range s.returned {
			do()
		}
	}
}

// failure is why the last request for a resource failed, since when all of them have, and since when all of them were refused.
type failure struct {
	last    atomic.Pointer[outage]
	denials permission.Series
}

type outage struct {
	err   error
	since time.Time
}

// note remembers what became of a request, and returns it.
func (f *failure) note(err error) error {
	f.denials.Note(err, time.Now())
	if err == nil {
		f.last.Store(nil)
		return nil
	}
	next := &outage{err: err, since: time.Now()}
	if last := f.last.Load(); last != nil {
		next.since = last.since
	}
	f.last.Store(next)
	return err
}

// err returns why the last request failed; nil if it did not, or if there was none.
func (f *failure) err() error { return f.lasting(0) }

// lasting does so if all requests have failed for at least that long.
func (f *failure) lasting(d time.Duration) error {
	if last := f.last.Load(); last != nil && time.Since(last.since) >= d {
		return last.err
	}
	return nil
}

// noting is a client that remembers why its last request failed.
type noting[L runtime.Object] struct {
	Client[L]
	failure *failure
}

func (n noting[L]) List(ctx context.Context, options metav1.ListOptions) (L, error) {
	list, err := n.Client.List(ctx, options)
	return list, n.failure.note(err)
}

func (n noting[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := n.Client.Watch(ctx, options)
	if err == nil && reflect.TypeOf(events) == emptyWatch {
		err = errBroken
	}
	return events, n.failure.note(err)
}

// emptyWatch is the type of the watch that a client returns, without an error, when its connection breaks before the server has answered.
var (
	emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())
	errBroken  = errors.New("the connection broke")
)

// Client lists and watches the objects of a resource.
type Client[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newListWatch returns what an informer needs to follow the objects of a resource that carry the label, or all of them. The client set
// says whether it streams lists.
func newListWatch[L runtime.Object](s *Server, clientSet any, client Client[L], label string) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = label
			var list runtime.Object
			err := s.try(ctx, func() (err error) {
				list, err = client.List(ctx, options)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = label
			var events watch.Interface
			err := s.try(ctx, func() (err error) {
				events, err = client.Watch(ctx, options)
				return err
			})
			return events, err
		},
	}, clientSet)
}

// try sends a request until it succeeds, the context ends, or the answer is one that a reflector acts on.
func (s *Server) try(ctx context.Context, request func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	pause := minPause
	for {
		err := s.admits(ctx)
		if err == nil {
			err = request()
		}
		if err == nil || answers(err) {
			s.answers()
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		s.fails()
		failed := time.Now()
		if seconds, suggested := apierrors.SuggestsClientDelay(err); suggested {
			pause = max(pause, min(time.Duration(seconds)*time.Second, maxFailurePause))
		}
		for {
			select {
			case <-ctx.Done():
				return err
			case <-time.After(jittered(pause)):
			}
			if s.serves(ctx, failed, err) {
				break
			}
			pause = minPause // the server is away, so it has come back when it answers next
		}
		pause = min(2*pause, maxFailurePause)
	}
}

func (s *Server) admits(ctx context.Context) error {
	if s.admit == nil {
		return nil
	}
	return s.admit(ctx)
}

func jittered(pause time.Duration) time.Duration {
	if pause >= maxPause {
		return pause
	}
	return pause + rand.N(maxPause-pause)
}

// answers returns whether an error is an answer to the request, which sending it again does not change.
func answers(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}
