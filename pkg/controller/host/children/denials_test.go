// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

var deniedThings = schema.GroupResource{Resource: "things"}

func deniedByWebhook(name string) error {
	return apierrors.NewForbidden(deniedThings, name, errors.New(`admission webhook "w" denied the request: no`))
}

func deniedByQuota(name string) error {
	return apierrors.NewForbidden(deniedThings, name, errors.New("exceeded quota: q"))
}

// denialRig is a controller that asks for children.
type denialRig struct {
	*Denials
	now   *clocktesting.FakePassiveClock
	owner *metav1.ObjectMeta
	asked []string
	// answer is the answer of the API.
	answer func(name string) error
}

func newDenialRig() *denialRig {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &denialRig{Denials: NewDenials(now), now: now, owner: &metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "o1", Generation: 1}, answer: deniedByWebhook}
}

func (r *denialRig) ask(verb string, names ...string) (err error) {
	r.asked = nil
	for _, name := range names {
		what := Request{Verb: verb, Resource: "things", Name: name, UID: types.UID("of-" + name)}
		err = r.Do(r.owner, what, func() error { r.asked = append(r.asked, name); return r.answer(name) })
	}
	return err
}

func (r *denialRig) want(t *testing.T, asked ...string) {
	t.Helper()
	if d := cmp.Diff(asked, r.asked); d != "" {
		t.Errorf("asked for (-want +got):\n%s", d)
	}
}

func (r *denialRig) pass(d time.Duration) { r.now.SetTime(r.now.Now().Add(d)) }

// TestDeniedRequestsWait asks for two children of which one is denied.
func TestDeniedRequestsWait(t *testing.T) {
	r := newDenialRig()
	r.answer = func(name string) error {
		if name == "a" {
			return deniedByWebhook(name)
		}
		return nil
	}
	first := r.ask(verbCreate, "a")
	r.pass(4 * time.Second)
	again := r.ask(verbCreate, "a")
	r.want(t)
	if first.Error() != again.Error() || NotAsked(first) || !NotAsked(again) || reasonOf(again) != reasons.AdmissionDenied {
		t.Errorf("first %v (%t), again %v (%t)", first, NotAsked(first), again, NotAsked(again))
	}
	if next, only := AskAgain(FirstErrors(again)); !only || next.Sub(r.now.Now()) != time.Second {
		t.Errorf("next %v (%t), want in a second", next.Sub(r.now.Now()), only)
	}
	if err := r.ask(verbCreate, "b"); err != nil {
		t.Errorf("another child: %v", err)
	}
	for name, change := range map[string]func(){
		"a new generation":      func() { r.owner.Generation++ },
		"another owner":         func() { r.owner.UID = "o2" },
		"a clock that was set":  func() { r.pass(-time.Hour) },
		"an owner that is gone": func() { r.Forget(cache.NewObjectName("ns", "o")) },
	} {
		_ = r.ask(verbCreate, "a")
		_ = r.ask(verbCreate, "a")
		r.want(t)
		change()
		if _ = r.ask(verbCreate, "a"); len(r.asked) != 1 {
			t.Errorf("%s: the child is not asked for at once", name)
		}
	}
}

// TestSharedDenialsWaitTogether has a quota, and a template that is not valid.
func TestSharedDenialsWaitTogether(t *testing.T) {
	r := newDenialRig()
	r.answer = deniedByQuota
	if err := r.ask(verbCreate, "a", "b", "c"); reachOf(schema.GroupKind{}, "c", err) != allChildren || !RefusesAll(err) {
		t.Errorf("reach of %v", err)
	}
	r.want(t, "a")
	_ = r.ask(verbDelete, "a") // another verb
	r.want(t, "a")
	r.pass(askFirst)
	room := 1
	r.answer = func(name string) error {
		if room--; room >= 0 {
			return nil
		}
		return deniedByQuota(name)
	}
	_ = r.ask(verbCreate, "a", "b", "c")
	r.want(t, "a", "b")
	r.pass(askFirst) // room becomes free piece by piece
	room = 5
	_ = r.ask(verbCreate, "b", "c")
	r.want(t, "b", "c")
}

// TestAcceptedChildLiftsOthers has a webhook that denies many children, and then none.
func TestAcceptedChildLiftsOthers(t *testing.T) {
	r := newDenialRig()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("c", i))
	}
	for range 20 * 60 {
		_ = r.ask(verbCreate, names...)
		r.pass(time.Second)
	}
	r.answer = func(string) error { return nil }
	accepted := map[string]bool{}
	for range 2 * 60 {
		_ = r.ask(verbCreate, names...)
		for _, name := range r.asked {
			accepted[name] = true
		}
		r.pass(time.Second)
	}
	if len(accepted) != len(names) {
		t.Errorf("%d of %d children exist two minutes after the reason has gone", len(accepted), len(names))
	}
}

// TestManyDenials has more children than are remembered, of all of which each is asked for by each pass.
func TestManyDenials(t *testing.T) {
	r := newDenialRig()
	var names []string
	for i := range 2 * maxDenials {
		names = append(names, fmt.Sprint("c", i))
	}
	asked := map[string]int{}
	for minute := range 5 {
		n := 0
		for range 60 {
			_ = r.ask(verbCreate, names...)
			n += len(r.asked)
			for _, name := range r.asked {
				asked[name]++
			}
			r.pass(time.Second)
		}
		if most := map[bool]int{true: 2*maxDenials + maxAgain, false: maxAgain}[minute == 0]; n > most {
			t.Errorf("%d requests in minute %d, want %d at most", n, minute, most)
		}
	}
	if of := r.owners[cache.NewObjectName("ns", "o")]; len(of.requests) > maxDenials {
		t.Errorf("%d denials are remembered, want %d at most", len(of.requests), maxDenials)
	}
	r.pass(24 * time.Hour)
	_ = r.ask(verbCreate, "c0")
	if of := r.owners[cache.NewObjectName("ns", "o")]; len(of.requests) != 1 {
		t.Errorf("%d denials are remembered after a day, want 1", len(of.requests))
	}
}

// TestTakenNamesAreLookedAt has a name that another object has.
func TestTakenNamesAreLookedAt(t *testing.T) {
	r := newDenialRig()
	r.answer = func(name string) error { return apierrors.NewAlreadyExists(deniedThings, name) }
	what, looks := Request{Verb: verbCreate, Resource: "things", Name: "a", UID: "of-a"}, 0
	for range 10 * 60 {
		if err := r.ask(verbCreate, "a"); !NotAsked(err) {
			looks++
			if due := (&Host{Clock: r.now}).Due(cache.ObjectName{}, queue.Due{}, r.Taken(r.owner, what, err)); due != (queue.Due{Acts: NamesTakenFor, Denied: true}) {
				t.Errorf("due %+v", due)
			}
		}
		r.pass(time.Second)
	}
	if looks != 20 {
		t.Errorf("%d looks in ten minutes, want 20", looks)
	}
}

// TestDecided has the answers of API servers, of which some are no decisions.
func TestDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"accepted":             {nil, false},
		"a quota":              {deniedByQuota("x"), true},
		"a webhook":            {deniedByWebhook("x"), true},
		"a webhook with a 500": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: `admission webhook "w" denied the request: no`}}, true},
		"a webhook is away":    {apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), false},
		"invalid":              {apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil), true},
		"a conflict":           {apierrors.NewConflict(deniedThings, "x", nil), false},
		"a taken name":         {apierrors.NewAlreadyExists(deniedThings, "x"), false},
		"gone":                 {apierrors.NewNotFound(deniedThings, "x"), false},
		"too many requests":    {apierrors.NewTooManyRequests("later", 1), false},
		"not logged in":        {apierrors.NewUnauthorized("no"), false},
		"no answer":            {errors.New("connection refused"), false},
		"undone by others":     {&UndoneError{message: "undone"}, false},
	} {
		if got := Decided(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestDueOfDenials has errors with denials and other failures.
func TestDueOfDenials(t *testing.T) {
	r := newDenialRig()
	host := &Host{Clock: r.now}
	own, other, conflict := r.ask(verbCreate, "a"), errors.New("no answer"), apierrors.NewConflict(deniedThings, "x", nil)
	for name, tc := range map[string]struct {
		err  error
		want queue.Due
	}{
		"none":                       {nil, queue.After(time.Hour)},
		"another failure":            {FirstErrors(other), queue.After(time.Hour)},
		"a denial":                   {fmt.Errorf("thing: %w", FirstErrors(own, nil)), queue.Due{Deadline: time.Hour, Acts: askFirst, Denied: true}},
		"both":                       {FirstErrors(own, other), queue.Due{Deadline: time.Hour, Acts: askFirst}},
		"a conflict, not shown":      {FirstErrors(own, conflict), queue.Due{Deadline: time.Hour, Acts: askFirst}},
		"another failure, not shown": {FirstErrors(own, own, own, own, other), queue.Due{Deadline: time.Hour, Acts: askFirst}},
		"nested":                     {FirstErrors(nil, FirstErrors(own, own, own, own)), queue.Due{Deadline: time.Hour, Acts: askFirst, Denied: true}},
	} {
		if got := host.Due(cache.ObjectName{}, queue.After(time.Hour), tc.err); got != tc.want {
			t.Errorf("%s: due %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestAbsentIsLookedAtAgain has requests about what an API does not know, after which the owner is looked at again once.
func TestAbsentIsLookedAtAgain(t *testing.T) {
	r := newDenialRig()
	r.answer = func(name string) error { return apierrors.NewNotFound(deniedThings, name) }
	host, key := &Host{Clock: r.now, Denials: r.Denials}, cache.MetaObjectToName(r.owner)
	for verb, want := range map[string]time.Duration{verbPatch: lookAgain, verbDelete: lookAgain, verbStatus: lookAgain, verbCreate: 0} {
		err := r.ask(verb, "a")
		if due := host.Due(key, queue.Due{}, nil); !apierrors.IsNotFound(err) || due != queue.After(want) {
			t.Errorf("%s: %v, due %+v, want after %s", verb, err, due, want)
		}
		if due := host.Due(key, queue.Due{}, nil); due != (queue.Due{}) {
			t.Errorf("%s: due %+v once more", verb, due)
		}
	}
	_ = r.ask(verbPatch, "a")
	if due := host.Due(key, queue.After(time.Second), nil); due != queue.After(time.Second) {
		t.Errorf("due %+v, want what is due sooner", due)
	}
}

// TestLongAnswersAreShortened has an answer of a megabyte, which is not remembered whole.
func TestLongAnswersAreShortened(t *testing.T) {
	r := newDenialRig()
	r.answer = func(name string) error {
		return apierrors.NewForbidden(deniedThings, name, errors.New(`admission webhook "w" denied the request: `+strings.Repeat("x", 1<<20)))
	}
	_ = r.ask(verbCreate, "a")
	if err := r.ask(verbCreate, "a"); len(err.Error()) > maxAnswer || reasonOf(err) != reasons.AdmissionDenied {
		t.Errorf("%d bytes: %.100s", len(err.Error()), err)
	}
}
