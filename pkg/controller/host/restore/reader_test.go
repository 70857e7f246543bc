// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// clientFunc answers every request.
type clientFunc func(context.Context) (*corev1.ConfigMap, error)

func (f clientFunc) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	if name != witness.Name {
		return nil, errors.New("another ConfigMap is asked for: " + name)
	}
	return f(ctx)
}

func recordOf(t *testing.T, restored *witness.Restored) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	if err := (&witness.Record{UUID: "a", Floor: 1, Restored: restored}).Write(cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

var configMaps = schema.GroupResource{Resource: "configmaps"}

// at is some seconds after the restore.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: restoreTime.Add(time.Duration(seconds) * time.Second)}
}

var restoreTime = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// object is one of a resource version. Its fields were written by the subresources at times.
func object(version string, fields ...metav1.ManagedFieldsEntry) Object {
	return Object{UID: "u", ResourceVersion: version, Live: func(context.Context) (metav1.Object, error) {
		return &metav1.ObjectMeta{UID: "u", ResourceVersion: version, ManagedFields: fields}, nil
	}}
}

func TestStateOf(t *testing.T) {
	restored := recordOf(t, &witness.Restored{Revision: 100, Time: metav1.NewTime(restoreTime)})
	status := func(seconds int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Subresource: "status", Time: at(seconds)}
	}
	edit := metav1.ManagedFieldsEntry{Time: at(9)}
	answers := func(o Object, live metav1.Object, err error) Object {
		o.Live = func(context.Context) (metav1.Object, error) { return live, err }
		return o
	}
	acted := func(o Object, seconds int) Object {
		o.Acted = &metav1.MicroTime{Time: at(seconds).Time}
		return o
	}
	edited := State{Edited: true}
	for name, tc := range map[string]struct {
		record    *corev1.ConfigMap
		err       error
		object    Object
		want      State
		wantError string
	}{
		"an older object":                      {record: restored, object: object("99"), want: State{Restored: true}},
		"written just then":                    {record: restored, object: object("100"), want: State{Restored: true}},
		"edited since":                         {record: restored, object: object("101", status(-1), edit), want: State{Restored: true, Edited: true}},
		"its status was written since":         {record: restored, object: object("101", status(0), edit), want: edited},
		"one of its writers has written since": {record: restored, object: object("101", status(-1), status(3)), want: edited},
		"it never had a status":                {record: restored, object: object("101", edit), want: edited},
		"deleted since":                        {record: restored, object: answers(object("101"), nil, apierrors.NewNotFound(configMaps, "x"))},
		"deleted and created since":            {record: restored, object: answers(object("101"), &metav1.ObjectMeta{UID: "v", ManagedFields: []metav1.ManagedFieldsEntry{status(-1)}}, nil), want: edited},
		"written since it was seen":            {record: restored, object: answers(object("101"), &metav1.ObjectMeta{UID: "u", ResourceVersion: "102"}, nil), wantError: "the cache does not show the last write"},
		"no answer about it":                   {record: restored, object: answers(object("101"), nil, apierrors.NewServiceUnavailable("away")), wantError: "finding out who has written the object since the store was restored: away"},
		"a user acted since":                   {record: restored, object: acted(object("101", status(-1)), 0), want: State{Restored: true, Edited: true, Acted: true}},
		"a user acted before":                  {record: restored, object: acted(object("99"), -1), want: State{Restored: true}},
		"never restored":                       {record: recordOf(t, nil), object: object("1")},
		"no record":                            {err: apierrors.NewNotFound(configMaps, witness.Name), object: object("1")},
		"no answer":                            {err: apierrors.NewServiceUnavailable("away"), object: object("1"), wantError: "finding out whether the store was restored: away"},
		"not allowed":                          {err: apierrors.NewForbidden(configMaps, witness.Name, errors.New("no")), object: object("1"), wantError: "forbidden"},
		"the ConfigMap of the manifests":       {record: &corev1.ConfigMap{}, object: object("1")},
		"a malformed record":                   {record: &corev1.ConfigMap{Data: map[string]string{"floor": "1"}}, object: object("1"), wantError: "data[uuid]"},
		"an object without a version":          {record: restored, object: object(""), wantError: "resource version"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(clientFunc(func(context.Context) (*corev1.ConfigMap, error) { return tc.record, tc.err }), testingclock.NewFakePassiveClock(time.Now()))
			got, err := r.StateOf(t.Context(), tc.object)
			if got != tc.want || (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, tc.want, tc.wantError)
			}
		})
	}
}

// TestForbidden: what is refused for long is not there for this installation; what is refused once may be allowed in a moment.
func TestForbidden(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	answer := error(apierrors.NewForbidden(configMaps, witness.Name, errors.New("no")))
	r := NewReader(clientFunc(func(context.Context) (*corev1.ConfigMap, error) { return nil, answer }), clock)
	refused := func(want bool) {
		t.Helper()
		if got, err := r.StateOf(t.Context(), object("1")); got.Restored || (err != nil) != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	refused(true)
	clock.SetTime(clock.Now().Add(permission.LacksAfter - 1))
	refused(true)
	clock.SetTime(clock.Now().Add(1))
	refused(false)
	answer = apierrors.NewNotFound(configMaps, witness.Name)
	refused(false)
	answer = apierrors.NewForbidden(configMaps, witness.Name, errors.New("no"))
	refused(true)
	// The server was away in between, and has just started once more.
	answer = apierrors.NewServiceUnavailable("away")
	refused(true)
	clock.SetTime(clock.Now().Add(time.Hour))
	answer = apierrors.NewForbidden(configMaps, witness.Name, errors.New("no"))
	refused(true)
}

// TestOneRequestServesAllWhoAskedBefore: callers wait for the request under way, and then share the next one.
func TestOneRequestServesAllWhoAskedBefore(t *testing.T) {
	const callers = 50
	var requests atomic.Int64
	started, answer := make(chan struct{}), make(chan struct{})
	record := recordOf(t, &witness.Restored{Revision: 100})
	r := NewReader(clientFunc(func(context.Context) (*corev1.ConfigMap, error) {
		if requests.Add(1) == 1 {
			close(started)
			<-answer
			return recordOf(t, nil), nil // from before the restore
		}
		return record, nil
	}), testingclock.NewFakePassiveClock(time.Now()))
	var group sync.WaitGroup
	group.Go(func() {
		if got, err := r.StateOf(t.Context(), object("1")); got.Restored || err != nil {
			t.Errorf("the first caller: %+v, %v", got, err)
		}
	})
	<-started
	for range callers {
		group.Go(func() {
			if got, err := r.StateOf(t.Context(), object("1")); !got.Restored || err != nil {
				t.Errorf("a later caller: %+v, %v", got, err)
			}
		})
	}
	for r.asked.Load() <= callers {
		time.Sleep(time.Millisecond)
	}
	close(answer)
	group.Wait()
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestEndedCallers: the request of a caller who is gone is no answer for others.
func TestEndedCallers(t *testing.T) {
	r := NewReader(clientFunc(func(ctx context.Context) (*corev1.ConfigMap, error) { return recordOf(t, nil), ctx.Err() }), testingclock.NewFakePassiveClock(time.Now()))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.StateOf(gone, object("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := r.StateOf(t.Context(), object("1")); err != nil {
		t.Errorf("%v", err)
	}
}

// TestCallersNeedNotWait: a caller whose time is over goes, although the request of another one is under way.
func TestCallersNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		r := NewReader(clientFunc(func(context.Context) (*corev1.ConfigMap, error) {
			<-answer
			return recordOf(t, nil), nil
		}), testingclock.NewFakePassiveClock(time.Now()))
		first := make(chan error, 1)
		go func() {
			_, err := r.StateOf(t.Context(), object("1"))
			first <- err
		}()
		synctest.Wait()
		ends, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.StateOf(ends, object("1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(answer)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
