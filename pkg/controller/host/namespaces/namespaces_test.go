// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

var created = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// newSet returns a set that was created in the namespace old, an hour before the present one.
func newSet(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "train", Generation: 3, CreationTimestamp: metav1.NewTime(created.Add(-time.Hour)), Annotations: map[string]string{namespaceuid.Annotation: "old"},
	}}
	for _, f := range change {
		f(js)
	}
	return js
}

func held(js *jobsetv1alpha2.JobSet) {
	js.Status.Conditions = []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}, {
		Type: namespaceuid.Condition, Status: metav1.ConditionTrue, Reason: namespaceuid.ReasonOlderThanNamespace, Message: heldMessage,
	}}
}

const heldMessage = "the namespace team was deleted and created again after this object was created, so nothing is run for it; delete the object, or if it belongs to the new namespace, " +
	"set its annotation jobset-apiserver.io/namespace-uid to new"

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("no"))
}

func TestHold(t *testing.T) {
	for name, tc := range map[string]struct {
		set *jobsetv1alpha2.JobSet
		// uid is the UID of the present namespace; empty if there is none.
		uid types.UID
		// getErr and listErr are what the main API answers.
		getErr, listErr error
		held            bool
		status          metav1.ConditionStatus // of the condition; empty for none
		events          int
		err             string
	}{
		"the namespace is the one in which the set was created": {set: newSet(), uid: "old"},
		"the namespace was created again":                       {set: newSet(), uid: "new", held: true, status: metav1.ConditionTrue, events: 1},
		"it is known already":                                   {set: newSet(held), uid: "new", held: true, status: metav1.ConditionTrue},
		"the set is confirmed": {
			set: newSet(held, func(js *jobsetv1alpha2.JobSet) { js.Annotations[namespaceuid.Annotation] = "new" }), uid: "new", held: true, status: metav1.ConditionFalse,
		},
		"the namespace was created once more": {
			set: newSet(held), uid: "newer", held: true, status: metav1.ConditionTrue, events: 1,
		},
		"nothing was recorded":      {set: newSet(func(js *jobsetv1alpha2.JobSet) { js.Annotations = nil }), uid: "new"},
		"the set is being deleted":  {set: newSet(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &metav1.Time{Time: created} }), uid: "new"},
		"the set cannot be read":    {set: newSet(func(js *jobsetv1alpha2.JobSet) { js.Annotations[unreadable.Annotation] = "damaged" }), uid: "new"},
		"the namespace is gone":     {set: newSet()},
		"a wrong UID was recorded":  {set: newSet(func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(created.Add(time.Hour)) }), uid: "new"},
		"clocks differ":             {set: newSet(func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(created.Add(time.Minute)) }), uid: "new", held: true, status: metav1.ConditionTrue, events: 1},
		"reading them is forbidden": {set: newSet(), uid: "new", getErr: forbidden(), err: "finding out whether team is the namespace in which the object was created: namespaces is forbidden: no"},
		// kube-apiserver may allow what it refused a moment before, when it had just started.
		"listing them was forbidden": {set: newSet(), uid: "new", listErr: forbidden(), held: true, status: metav1.ConditionTrue, events: 1},
		"the main API is away":       {set: newSet(), uid: "new", getErr: errors.New("refused"), err: "finding out whether team is the namespace in which the object was created: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube := newKube(t, tc.uid)
				answer(kube, "get", tc.getErr)
				answer(kube, "list", tc.listErr)
				watch := newWatch(t, kube)
				client := jobsetfake.NewClientset(tc.set)
				recorder := events.NewFakeRecorder(10)
				sets := client.JobsetV1alpha2().JobSets("team")
				got, err := namespaces.Hold(t.Context(), watch, newHost(), sets, "jobsets", recorder, tc.set, conditions)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) || got != tc.held {
					t.Errorf("held %t, error %v; want %t, %q", got, err, tc.held, tc.err)
				}
				stored, err := sets.Get(t.Context(), "train", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var status metav1.ConditionStatus
				if c := meta.FindStatusCondition(stored.Status.Conditions, namespaceuid.Condition); c != nil {
					status = c.Status
					if want := strings.ReplaceAll(heldMessage, "to new", "to "+string(tc.uid)); status == metav1.ConditionTrue && c.Message != want {
						t.Errorf("the message is %q, want %q", c.Message, want)
					}
				}
				if status != tc.status || len(recorder.Events) != tc.events {
					t.Errorf("the condition is %q with %d events, want %q with %d", status, len(recorder.Events), tc.status, tc.events)
				}
				if before := len(tc.set.Status.Conditions); before > 1 && len(stored.Status.Conditions) != before {
					t.Errorf("the conditions are %+v", stored.Status.Conditions)
				}
			})
		})
	}
}

// TestDeniedConditionCostsNothing has a server that denies the condition, while the set is looked at each second.
func TestDeniedConditionCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, js, host, asked := newKube(t, "new"), newSet(), newHost(), 0
		watch, client := newWatch(t, kube), jobsetfake.NewClientset(js)
		client.PrependReactor("update", "jobsets", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			return true, nil, forbidden()
		})
		for second := range 600 {
			held, err := namespaces.Hold(t.Context(), watch, host, client.JobsetV1alpha2().JobSets("team"), "jobsets", events.NewFakeRecorder(10), js, conditions)
			if !held || err == nil {
				t.Fatalf("held %t, error %v; want true and an error", held, err)
			}
			if second == 59 && asked > 2 {
				t.Errorf("asked %d times in the first minute, want 2 at most", asked)
			}
			time.Sleep(time.Second)
		}
		if asked > 7 || asked < 5 {
			t.Errorf("asked %d times in ten minutes, want 5 to 7", asked)
		}
	})
}

// newHost returns what controllers share, without own writes.
func newHost() *children.Host {
	store := consistency.NewConsistencyStore(clock.RealClock{}, map[string]consistency.Versioned{})
	return &children.Host{Consistency: store, Runner: children.NewSlowStart(1), Clock: clock.RealClock{}}
}

func conditions(js *jobsetv1alpha2.JobSet) *[]metav1.Condition { return &js.Status.Conditions }

// newKube returns a main API in which the namespace has the UID, or does not exist.
func newKube(t *testing.T, uid types.UID) *fake.Clientset {
	t.Helper()
	kube := fake.NewClientset()
	if uid != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: uid, CreationTimestamp: metav1.NewTime(created)}}
		if err := kube.Tracker().Add(namespace); err != nil {
			t.Fatal(err)
		}
	}
	return kube
}

// TestRefusalsMustLast: kube-apiserver refuses everything until it has loaded its roles. A set is not run because of
// that, but it is where the controller has no permission to read namespaces.
func TestRefusalsMustLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, js := newKube(t, "new"), newSet()
		refused := true
		kube.PrependReactor("*", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused, nil, forbidden()
		})
		watch := newWatch(t, kube)
		hold := func(wantHeld, wantErr bool) {
			t.Helper()
			sets := jobsetfake.NewClientset(js).JobsetV1alpha2().JobSets("team")
			held, err := namespaces.Hold(t.Context(), watch, newHost(), sets, "jobsets", events.NewFakeRecorder(10), js, conditions)
			if held != wantHeld || (err != nil) != wantErr {
				t.Errorf("held %t, error %v; want %t, %t", held, err, wantHeld, wantErr)
			}
		}
		hold(false, true)
		time.Sleep(permission.LacksAfter - 1)
		hold(false, true)
		time.Sleep(time.Nanosecond)
		hold(false, false)
		refused = false
		hold(true, false)
		refused = true
		hold(false, true)
	})
}

func answer(kube *fake.Clientset, verb string, err error) {
	if err != nil {
		kube.PrependReactor(verb, "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}

// newWatch returns a watch that has filled its cache, or was refused for so long that it counts. It is called in a bubble.
func newWatch(t *testing.T, kube *fake.Clientset) *namespaces.Watch {
	t.Helper()
	factory := informers.NewFactory(kube)
	kind := factory.For("test")
	watch := namespaces.New(kind, kube, clock.RealClock{})
	watches, err := factory.Build(kind)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	watches.Start(ctx)
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return len(kind.Unfilled()) == 0, nil })
	if err != nil {
		t.Fatalf("unfilled %v", kind.Unfilled())
	}
	return watch
}
