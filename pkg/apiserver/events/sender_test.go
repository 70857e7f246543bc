// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

const unforgiving = "needs the permissions of"

// rig is a sender to an API that answers creations with the errors given, in turn; the last one is repeated.
type rig struct {
	*Sender
	kube  *fake.Clientset
	tries atomic.Int32
	ctx   context.Context // has the logger
	log   func() string
}

func newRig(t *testing.T, answers ...error) *rig {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	r := &rig{kube: fake.NewClientset(), ctx: klog.NewContext(t.Context(), logger)}
	r.log = func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
	r.kube.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		try := int(r.tries.Add(1))
		if len(answers) == 0 {
			return false, nil, nil
		}
		err := answers[min(try, len(answers))-1]
		return err != nil, nil, err
	})
	r.Sender = start(r.ctx, "jobset-apiserver", r.kube.EventsV1(), wait.Backoff{Steps: 3, Duration: time.Millisecond})
	return r
}

func (r *rig) stored(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := r.kube.EventsV1().Events("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// hanging is an API that never answers.
type hanging struct {
	typedeventsv1.EventsV1Interface
}

func (h hanging) Events(namespace string) typedeventsv1.EventInterface {
	return hangingEvents{h.EventsV1Interface.Events(namespace)}
}

type hangingEvents struct {
	typedeventsv1.EventInterface
}

func (hangingEvents) Create(ctx context.Context, _ *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func restart(note string) provider.Event {
	return provider.Event{
		Regarding: corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: "ml", Name: "train", UID: "u"},
		Action:    "restart", Reason: "RestartRequested", Note: note,
	}
}

func TestEvent(t *testing.T) {
	r := newRig(t)
	before := time.Now()
	r.Record(restart("ada asked"))
	r.Record(restart("bob asked"))
	r.Close()
	got := r.stored(t)
	want := []eventsv1.Event{{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "ml"},
		ReportingController: "jobset-apiserver", Type: "Normal", Reason: "RestartRequested", Action: "restart", Note: "ada asked",
		Regarding: corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: "ml", Name: "train", UID: "u"},
	}}
	want = append(want, *want[0].DeepCopy())
	want[1].Note = "bob asked"
	volatile := []cmp.Option{
		cmpopts.IgnoreTypes(metav1.TypeMeta{}), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name", "ManagedFields"),
		cmpopts.IgnoreFields(eventsv1.Event{}, "EventTime", "ReportingInstance"),
		cmpopts.SortSlices(func(a, b eventsv1.Event) bool { return a.Note < b.Note }),
	}
	if diff := cmp.Diff(want, got, volatile...); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, event := range got {
		if !strings.HasPrefix(event.Name, "train.") || !strings.HasPrefix(event.ReportingInstance, "jobset-apiserver") || event.EventTime.Time.Before(before) {
			t.Errorf("got %+v", event)
		}
	}
	if log := r.log(); log != "" {
		t.Errorf("the log is %s", log)
	}
}

func TestSend(t *testing.T) {
	events := eventsv1.Resource("events")
	busy := apierrors.NewTooManyRequests("busy", 1)
	ending := apierrors.NewForbidden(events, "e", errors.New("the namespace ends"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		answers    []error
		wantTries  int32
		wantStored int
		wantLog    bool
	}{
		"what is accepted is sent once":                          {nil, 1, 1, false},
		"an API that was away for a moment gets it":              {[]error{errors.New("connection refused"), busy, nil}, 3, 1, false},
		"an API that stays away does not hold the others up":     {[]error{errors.New("connection refused")}, 3, 0, true},
		"without the permission there is no second try":          {[]error{apierrors.NewForbidden(events, "e", errors.New("no"))}, 1, 0, true},
		"a first try that got through after all is no failure":   {[]error{errors.New("cut off"), apierrors.NewAlreadyExists(events, "e")}, 2, 0, false},
		"a namespace that ends needs no events":                  {[]error{ending}, 1, 0, false},
		"a namespace that is gone needs no events":               {[]error{apierrors.NewNotFound(corev1.Resource("namespaces"), "ml")}, 1, 0, false},
		"an event that the API finds wrong is not sent for ever": {[]error{apierrors.NewBadRequest("note")}, 1, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.answers...)
			r.Record(restart("ada asked"))
			r.Close()
			if got := r.tries.Load(); got != tc.wantTries {
				t.Errorf("%d tries, want %d", got, tc.wantTries)
			}
			if got := len(r.stored(t)); got != tc.wantStored {
				t.Errorf("%d events, want %d", got, tc.wantStored)
			}
			if log := r.log(); strings.Contains(log, unforgiving) != tc.wantLog {
				t.Errorf("the log is %q, want a line: %t", log, tc.wantLog)
			}
		})
	}
}

func TestLostEventsAreLoggedAtMostOnceInTenMinutes(t *testing.T) {
	r := newRig(t, apierrors.NewForbidden(eventsv1.Resource("events"), "e", errors.New("no")))
	for i := range 50 {
		r.Record(restart(fmt.Sprint(i)))
	}
	r.Close()
	if got := r.tries.Load(); got != 50 {
		t.Errorf("%d tries", got)
	}
	log := r.log()
	if n := strings.Count(log, unforgiving); n != 1 || !strings.Contains(log, "lost=1") || !strings.Contains(log, `object="ml/train"`) {
		t.Errorf("%d lines: %s", n, log)
	}
	// After that time, the next line has their number.
	r.logged = r.logged.Add(-quiet)
	r.send(r.ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}})
	if log := r.log(); strings.Count(log, unforgiving) != 2 || !strings.Contains(log, "lost=50") {
		t.Errorf("the log is %s", log)
	}
}

func TestRecordNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		held, release := make(chan struct{}, 1), make(chan struct{})
		r.kube.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			select {
			case held <- struct{}{}:
				<-release
			default:
			}
			r.tries.Add(1)
			return true, &eventsv1.Event{}, nil
		})
		r.Record(restart("first"))
		<-held
		for range maxQueued + 7 {
			r.Record(restart("more"))
		}
		if got := r.overflow.Load(); got != 7 {
			t.Errorf("%d were lost, want 7", got)
		}
		close(release)
		r.Close()
		if got := r.tries.Load(); got != maxQueued+1 {
			t.Errorf("%d were sent before the end, want %d", got, maxQueued+1)
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.client = hanging{r.client}
		r.Record(restart("ada asked"))
		begin := time.Now()
		r.Close()
		if took := time.Since(begin); took != closeTimeout {
			t.Errorf("it took %v, want %v", took, closeTimeout)
		}
		r.Record(restart("too late")) // is no panic
	})
}
