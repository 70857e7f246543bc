// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// groups are the API groups of test controllers, by the name of the controller.
var groups = map[string]schema.GroupVersion{
	"one": {Group: "one.example.com", Version: "v1"}, "two": {Group: "two.example.com", Version: "v1"},
}

// testController syncs Jobs that carry the name of the controller as a label. The one of the name two needs Services too.
type testController struct {
	queue           *queue.Queue
	synced          atomic.Int32
	running, failed atomic.Bool
	// lingers is how long it takes to end.
	lingers time.Duration
}

func (c *testController) descriptor(name string) Descriptor {
	return Descriptor{Name: name, Own: []schema.GroupVersion{groups[name]}, New: func(kind *informers.Kind) (Controller, error) {
		keep := func(obj any) (any, error) { return obj, nil }
		jobs := kind.Informer(informers.Need{Resource: kind.Jobs(), Label: name, Transform: keep})
		jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { c.queue.Add(cache.MetaObjectToName(obj.(*batchv1.Job))) }})
		if name == "two" {
			kind.Informer(informers.Need{Resource: kind.Services(), Transform: keep})
		}
		if c.failed.Load() {
			return nil, errors.New("the number of workers must be 1 or more")
		}
		return c, nil
	}}
}

func (c *testController) Run(ctx context.Context) {
	c.running.Store(true)
	c.queue.Run(ctx, 1, func(context.Context, cache.ObjectName) (queue.Due, error) {
		c.synced.Add(1)
		return queue.Due{}, nil
	})
	time.Sleep(c.lingers)
	c.running.Store(false)
}

// env is a manager of two controllers with a main API.
type env struct {
	*Manager
	factory  *informers.Factory
	kube     *fake.Clientset
	one, two testController
	begun    time.Time
	// served are the API groups that the main API serves.
	served atomic.Pointer[[]*metav1.APIResourceList]
	// elsewhere are the names of controllers whose groups kube-apiserver serves itself.
	elsewhere atomic.Pointer[[]string]
}

// newEnv has the main API serve the groups of some controllers.
func newEnv(t *testing.T, served ...string) *env {
	job := func(name string) runtime.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{name: ""}}}
	}
	e := &env{one: testController{queue: queue.New("one")}, two: testController{queue: queue.New("two")}, kube: fake.NewClientset(job("one"), job("two")), begun: time.Now()}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for _, q := range []*queue.Queue{e.one.queue, e.two.queue} {
			q.Run(over, 0, nil) // ends the goroutines of one that has never run
		}
	})
	e.serve(served...)
	e.kube.PrependReactor("get", "resource", func(clientgotesting.Action) (bool, runtime.Object, error) {
		e.kube.Resources = *e.served.Load() // nothing else reads it
		return false, nil, nil
	})
	e.elsewhere.Store(&[]string{})
	e.factory = informers.NewRoutedFactory(e.kube, func(_ context.Context, gv schema.GroupVersion) (bool, error) {
		return !slices.ContainsFunc(*e.elsewhere.Load(), func(name string) bool { return groups[name] == gv }), nil
	})
	e.Manager = New(e.factory, e.one.descriptor("one"), e.two.descriptor("two"))
	return e
}

// serve has the main API serve the groups of these controllers and no others.
func (e *env) serve(names ...string) {
	var served []*metav1.APIResourceList
	for _, name := range names {
		served = append(served, &metav1.APIResourceList{GroupVersion: groups[name].String()})
	}
	e.served.Store(&served)
}

// refuse makes the main API answer requests with an error until the time has passed.
func (e *env) refuse(verb, resource string, err error, until time.Duration) {
	e.kube.PrependReactor(verb, resource, func(clientgotesting.Action) (bool, runtime.Object, error) {
		return time.Since(e.begun) < until, nil, err
	})
}

// requests counts those for a resource.
func (e *env) requests(resource string) (n int) {
	synctest.Wait()
	for _, action := range e.kube.Actions() {
		if action.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

func (e *env) check(t *testing.T, when, wantNotReady string) {
	t.Helper()
	synctest.Wait()
	got := ""
	if err := e.Ready(); err != nil {
		got = err.Error()
	}
	if got != wantNotReady {
		t.Errorf("%s: not ready due to %q, want %q", when, got, wantNotReady)
	}
}

var errAway = apierrors.NewServiceUnavailable("away")

// TestAwaitAgreesWithReady has two controllers, of which each may be kept from starting.
func TestAwaitAgreesWithReady(t *testing.T) {
	const never = time.Hour
	both := []string{"one", "two"}
	for name, tc := range map[string]struct {
		served    []string
		prepare   func(*env)
		want      time.Duration
		wantError string
		// wantReason is why the program is still not ready after an hour, in which it has not ended.
		wantReason string
	}{
		"both are ready at once": {served: both, prepare: func(*env) {}},
		"the caches of one take longer": {
			served: both, prepare: func(e *env) { e.refuse("list", "services", errAway, 30*time.Second) }, want: 30 * time.Second,
		},
		"the caches of one are never filled": {
			served: both, prepare: func(e *env) { e.refuse("list", "services", errAway, never) }, want: startTimeout,
		},
		"the caches of both are never filled": {
			served: both, prepare: func(e *env) { e.refuse("list", "*", errAway, 2*never) }, want: never,
			wantReason: "one: waiting for caches to sync: jobs (away); two: waiting for caches to sync: jobs (away), services (away)",
		},
		"one cannot be built": {served: both, prepare: func(e *env) { e.one.failed.Store(true) }},
		"neither can be built": {
			served: both, prepare: func(e *env) { e.one.failed.Store(true); e.two.failed.Store(true) },
			wantError: "no controller can work: one: the number of workers must be 1 or more; two: the number of workers must be 1 or more",
		},
		"the group of one is absent": {served: []string{"one"}, prepare: func(*env) {}},
		"the group of one is absent, and the other cannot be built": {
			served: []string{"one"}, prepare: func(e *env) { e.one.failed.Store(true) }, want: never,
			wantReason: `one: the number of workers must be 1 or more; two: two.example.com/v1 is not served: ` +
				`the server could not find the requested resource, GroupVersion "two.example.com/v1" not found`,
		},
		"the question for the group of one is not answered, and that of the other is": {
			served: both, want: firstGroupsPoll, prepare: func(e *env) {
				asked := 0
				e.kube.PrependReactor("get", "resource", func(clientgotesting.Action) (bool, runtime.Object, error) {
					asked++ // no other goroutine asks
					return asked == 2, nil, errors.New("forbidden until the permissions are in force")
				})
			},
		},
		"the server of the groups is away": {served: both, prepare: func(e *env) { e.refuse("get", "resource", errAway, never) }},
		"the main API is away at first": {
			served: both, prepare: func(e *env) { e.refuse("*", "*", errors.New("connection refused"), 30*time.Second) }, want: 30 * time.Second,
		},
		"the main API is away for half an hour": {
			served: both, prepare: func(e *env) { e.refuse("*", "*", errors.New("connection refused"), 30*time.Minute) }, want: 30 * time.Minute,
		},
		"the main API is away": {
			served: both, prepare: func(e *env) { e.refuse("*", "*", errors.New("connection refused"), 2*never) }, want: never,
			wantReason: "one: one.example.com/v1 is not served: connection refused; two: two.example.com/v1 is not served: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, tc.served...)
				tc.prepare(e)
				e.Start(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), never) // a wait that never ends takes no time here
				defer cancel()
				err := e.Await(ctx)
				// Servers that are away are asked every few seconds.
				if took := time.Since(e.begun); took < tc.want || took > tc.want+5*time.Second {
					t.Errorf("waited %s, want %s", took, tc.want)
				}
				if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != tc.wantError {
					t.Errorf("error %q, want %q", got, tc.wantError)
				}
				e.check(t, "afterwards", tc.wantReason+strings.TrimPrefix(tc.wantError, "no controller can work: "))
			})
		})
	}
}

func TestAwaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newEnv(t).Await(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestAbsentGroupCostsNothing has the group of one controller appear after an hour.
func TestAbsentGroupCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, "one")
		ctx, cancel := context.WithCancel(t.Context())
		e.Start(ctx)
		ended := make(chan struct{})
		go func() {
			e.Run(ctx)
			close(ended)
		}()
		time.Sleep(time.Hour)
		e.check(t, "without the group", "")
		if synced := e.one.synced.Load(); synced != 1 || e.two.running.Load() {
			t.Errorf("one has synced %d Jobs, want 1; two runs: %t, want false", synced, e.two.running.Load())
		}
		watched := e.requests("services")
		if asked, most := e.requests("resource"), 2+int(time.Hour/groupsPoll); watched != 0 || asked > most {
			t.Errorf("%d requests for services, want none; %d for API groups, want at most %d", watched, asked, most)
		}
		e.serve("one", "two")
		asked := e.requests("resource")
		time.Sleep(groupsPoll + cachesPoll)
		e.check(t, "with the group", "")
		if synced := e.two.synced.Load(); synced != 1 {
			t.Errorf("two has synced %d Jobs, want 1", synced)
		}
		time.Sleep(time.Hour)
		if more := e.requests("resource") - asked; more != 1 {
			t.Errorf("%d requests for API groups, want 1", more)
		}
		cancel()
		<-ended
		if e.one.running.Load() || e.two.running.Load() {
			t.Error("a controller still runs")
		}
	})
}

func TestRunBeginsEachControllerWhenItsCachesAreFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, "one", "two")
		e.one.lingers = time.Second
		e.refuse("list", "services", errAway, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		e.Start(ctx)
		ended := make(chan struct{})
		go func() {
			e.Run(ctx)
			close(ended)
		}()
		time.Sleep(50 * time.Second)
		if !e.one.running.Load() || e.two.running.Load() {
			t.Errorf("one runs: %t, want true; two runs: %t, want false", e.one.running.Load(), e.two.running.Load())
		}
		time.Sleep(20 * time.Second)
		if !e.two.running.Load() {
			t.Error("two does not run although its caches are filled")
		}
		cancel()
		<-ended
		if e.one.running.Load() || e.two.running.Load() {
			t.Error("a controller still runs")
		}
	})
}
