// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
)

// fakeServer answers while it is not away.
type fakeServer struct {
	mu sync.Mutex
	// away is what it answers instead; nil while it serves.
	away    error
	watches []*watch.RaceFreeFakeWatcher

	lists, probes, refused atomic.Int32
}

// leave ends all watches.
func (f *fakeServer) leave(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
	for _, w := range f.watches {
		w.Stop()
	}
	f.watches = nil
}

func (f *fakeServer) answer() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		f.refused.Add(1)
	}
	return f.away
}

func (f *fakeServer) watching() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watches)
}

func (f *fakeServer) probe(context.Context) error {
	f.probes.Add(1)
	return f.answer()
}

func (f *fakeServer) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	f.lists.Add(1)
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, f.answer()
}

func (f *fakeServer) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if err := f.answer(); err != nil {
		return nil, err
	}
	w := watch.NewRaceFreeFake()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches = append(f.watches, w)
	return w, nil
}

// IsWatchListSemanticsUnSupported makes the reflector list.
func (f *fakeServer) IsWatchListSemanticsUnSupported() bool { return true }

// TestWatchesResumeAfterServerOutage has five caches lose their server for a minute.
func TestWatchesResumeAfterServerOutage(t *testing.T) {
	const caches, outage, bound = 5, time.Minute, 5 * time.Second
	for name, away := range map[string]error{
		"a server that cannot be reached":     errors.New("connection refused"),
		"an API without a server":             apierrors.NewServiceUnavailable("no endpoints"),
		"an API that is not registered":       apierrors.NewNotFound(schema.GroupResource{}, ""),
		"a server that asks to come later":    apierrors.NewTooManyRequests("later", 1),
		"a server that does not know us yet":  apierrors.NewUnauthorized("who?"),
		"a server that fails in whatever way": apierrors.NewInternalError(errors.New("panic")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				s := newServer("test", f.probe)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for range caches {
					informer := cache.NewSharedIndexInformer(newListWatch[*corev1.ConfigMapList](s, f, f, ""), &corev1.ConfigMap{}, 0, nil)
					running.Go(func() { informer.RunWithContext(ctx) })
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				diff(t, "watches at first", caches, f.watching())

				f.leave(away)
				time.Sleep(outage)
				asked := f.refused.Load()
				f.leave(nil)
				back := time.Now()
				for f.watching() < caches && time.Since(back) < time.Minute {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				if took := time.Since(back); took > bound {
					t.Errorf("all is watched again %s after the return of the server, more than %s", took, bound)
				}
				// One probe a second, and one request of each cache.
				if most := int32(outage/minPause) + 2*caches; asked > most {
					t.Errorf("%d requests during the outage, more than %d", asked, most)
				}
				f.leave(away)
				cancel()
				s.stop()
				running.Wait()
			})
		})
	}
}

// TestServedSince begins while the server is away in one case.
func TestServedSince(t *testing.T) {
	for name, begin := range map[string]error{"served at first": nil, "away at first": errors.New("connection refused")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{away: begin}
				s := newServer("test", f.probe)
				returns := 0
				s.OnReturn(func() { returns++ })
				ctx, cancel := context.WithCancel(t.Context())
				informer := cache.NewSharedIndexInformer(newListWatch[*corev1.ConfigMapList](s, f, f, ""), &corev1.ConfigMap{}, 0, nil)
				var running sync.WaitGroup
				running.Go(func() { informer.RunWithContext(ctx) })
				wait := func(d time.Duration) {
					time.Sleep(d)
					synctest.Wait()
				}
				wait(time.Minute)
				diff(t, "zero at first", begin != nil, s.ServedSince().IsZero())
				f.leave(nil)
				wait(time.Minute)
				first := s.ServedSince()
				diff(t, "returns before an interruption", map[bool]int{true: 1}[begin != nil], returns)

				f.leave(errors.New("connection refused"))
				wait(time.Minute)
				diff(t, "zero while it is away", true, s.ServedSince().IsZero())
				back := time.Now()
				f.leave(nil)
				wait(time.Minute)
				if since := s.ServedSince(); first.IsZero() || since.Before(back) || since.After(back.Add(5*time.Second)) {
					t.Errorf("served since %s, then %s; it returned at %s", first, since, back)
				}
				cancel()
				s.stop()
				running.Wait()
			})
		})
	}
}

func TestAnswersThatReflectorsActOnAreNotTriedAgain(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	gone := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonGone, Message: "gone"}}
	for _, answer := range []error{
		apierrors.NewResourceExpired("too old"), gone, tooLarge, apierrors.NewBadRequest("no"),
		apierrors.NewInvalid(schema.GroupKind{}, "", nil), apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "list", schema.GroupResource{}, "", "", 0, false),
	} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			f := &fakeServer{away: answer}
			lists := newListWatch[*corev1.ConfigMapList](newServer("test", f.probe), f, f, "")
			_, err := cache.ToListerWatcherWithContext(lists).ListWithContext(t.Context(), metav1.ListOptions{})
			if !errors.Is(err, answer) {
				t.Errorf("error %v", err)
			}
			diff(t, "probes", int32(0), f.probes.Load())
		})
	}
}

// TestOptionalResource has a kind that needs Jobs, and runs without PriorityClasses while it has no permission to watch them.
func TestOptionalResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var refused atomic.Bool
		refused.Store(true)
		kube.PrependReactor("list", "priorityclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
			if refused.Load() {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "priorityclasses"}, "", errors.New("no"))
			}
			return false, nil, nil
		})
		f := NewFactory(kube)
		same := func(obj any) (any, error) { return obj, nil }
		tolerant, strict := f.For("tolerant"), f.For("strict")
		tolerant.Informer(Need{Resource: f.Jobs(), Transform: same})
		classes := tolerant.Informer(Need{Resource: f.PriorityClasses(), Transform: same, Optional: true})
		strict.Informer(Need{Resource: f.Jobs(), Transform: same})
		strict.Informer(Need{Resource: f.PriorityClasses(), Transform: same})
		watches, err := f.Build(tolerant, strict)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "refused before there is an answer", false, classes.Refused())
		watches.Start(t.Context())
		synctest.Wait()
		// kube-apiserver refuses everything until it has loaded its roles.
		diff(t, "refused by a server that may have just started", false, classes.Refused())
		diff(t, "what is not known yet", []string{`priorityclasses (priorityclasses is forbidden: no)`}, tolerant.Unfilled())
		time.Sleep(permission.LacksAfter + maxFailurePause)
		synctest.Wait()
		diff(t, "refused", true, classes.Refused())
		diff(t, "what is missing where it is optional", []string(nil), tolerant.Unfilled())
		diff(t, "what is missing elsewhere", []string{`priorityclasses (priorityclasses is forbidden: no)`}, strict.Unfilled())
		refused.Store(false)
		time.Sleep(time.Minute)
		diff(t, "refused at last", false, classes.Refused())
		diff(t, "filled", true, classes.HasSynced())
	})
}

// TestFailingListBacksOff has a server that answers questions and fails to list.
func TestFailingListBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{away: errors.New("timeout")}
		s := newServer("test", func(context.Context) error { return nil })
		time.AfterFunc(time.Minute, s.stop)
		lists := newListWatch[*corev1.ConfigMapList](s, f, f, "")
		if _, err := cache.ToListerWatcherWithContext(lists).ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("no error of a list that was stopped")
		}
		if lists := f.lists.Load(); lists < 10 || lists > 18 {
			t.Errorf("%d lists in a minute", lists)
		}
	})
}

// brokenWatches are the watches of a client whose connections break.
type brokenWatches struct{ *fakeServer }

func (brokenWatches) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewEmptyWatch(), nil
}

// A client gives out a watch that has ended already when its connection breaks, which is no success.
func TestBrokenWatchIsAFailure(t *testing.T) {
	failed := &failure{}
	if _, err := (noting[*corev1.ConfigMapList]{brokenWatches{&fakeServer{}}, failed}).Watch(t.Context(), metav1.ListOptions{}); err == nil || failed.err() == nil {
		t.Errorf("error %v, noted %v", err, failed.err())
	}
}

// What fails once is not outdated; what keeps failing is.
func TestLastingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := &failure{}
		for range 6 {
			_ = failed.note(errors.New("refused"))
			if failed.lasting(time.Minute) != nil {
				t.Error("a failure lasts before its time")
			}
			time.Sleep(10 * time.Second)
		}
		if failed.lasting(time.Minute) == nil {
			t.Error("a failure does not last")
		}
		_ = failed.note(nil)
		if err := failed.note(errors.New("refused")); failed.lasting(time.Minute) != nil || err == nil {
			t.Errorf("a failure lasts that has just begun: %v", err)
		}
	})
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
