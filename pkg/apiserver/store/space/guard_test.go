// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/quota"
)

// member is an embedded etcd that uses a part of a quota of 1000 bytes.
type member struct {
	allocated, used int64
	full            bool
	told            int
}

func (m *member) Usage() quota.Usage {
	return quota.Usage{QuotaBytes: 1000, AllocatedBytes: m.allocated, InUseBytes: m.used}
}
func (m *member) Full() bool { return m.full }
func (m *member) Refused()   { m.told++ }

// inner is a store of one object that answers every write with err.
type inner struct {
	storage.Interface
	object runtime.Object
	err    error
	writes int
}

func (i *inner) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	i.writes++
	return i.err
}

func (i *inner) GuaranteedUpdate(_ context.Context, _ string, _ runtime.Object, _ bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	if _, _, err := update(i.object, storage.ResponseMeta{}); err != nil {
		return err
	}
	i.writes++
	return i.err
}

// States of the store.
var (
	plenty    = &member{allocated: 899, used: 899}
	usedUp    = &member{allocated: 901, used: 901}
	allocated = &member{allocated: 951, used: 100}
	freePages = &member{allocated: 940, used: 100}
)

// fixed is a memory without watches.
func fixed(live, limit int64) *Memory {
	return &Memory{read: func() sample { return sample{live: live, limit: limit} }, collect: func() {}}
}

func TestCreationsKeepAReserve(t *testing.T) {
	cases := map[string]struct {
		store       *member
		live, limit int64
		wantRefusal string
	}{
		"there is space":                         {store: plenty, limit: math.MaxInt64},
		"nine tenths are in use":                 {store: usedUp, limit: math.MaxInt64, wantRefusal: "uses 90% of its quota"},
		"the file has grown, but pages are free": {store: freePages, limit: math.MaxInt64},
		"the file nearly has the quota":          {store: allocated, limit: math.MaxInt64, wantRefusal: "of its quota"},
		"half of memory is live":                 {store: plenty, live: 500, limit: 1000, wantRefusal: "take 50%"},
		"less than half of memory is live":       {store: plenty, live: 499, limit: 1000},
		"no limit of memory is set":              {store: plenty, live: math.MaxInt64 - 1, limit: math.MaxInt64},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			next := &inner{}
			g := New(c.store, fixed(c.live, c.limit))
			err := guarded{Interface: next, guard: g}.Create(t.Context(), "key", &corev1.Pod{}, nil, 0)
			if c.wantRefusal == "" {
				if err != nil || next.writes != 1 {
					t.Errorf("%d writes: %v", next.writes, err)
				}
				return
			}
			if !isInsufficient(err) || next.writes != 0 || !strings.Contains(err.Error(), c.wantRefusal) {
				t.Errorf("%d writes: %v", next.writes, err)
			}
		})
	}
}

// What was live at the last garbage collection may be garbage now: large answers that were under way then.
func TestGarbageDoesNotCountAsLive(t *testing.T) {
	live := int64(500)
	g := New(plenty, &Memory{read: func() sample { return sample{live: live, limit: 1000} }, collect: func() { live = 100 }})
	if lack := g.low(); lack != nil {
		t.Errorf("refused for 100 of 1000 bytes: %s", lack.message)
	}
}

func isInsufficient(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage && status.Status().Reason == ReasonInsufficientStorage
}

func TestOnlyChangesOfSpecAreRefused(t *testing.T) {
	change := func(f func(*corev1.Pod)) storage.UpdateFunc {
		return func(input runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			next := input.DeepCopyObject().(*corev1.Pod)
			f(next)
			return next, nil, nil
		}
	}
	cases := map[string]struct {
		update      storage.UpdateFunc
		subresource string
		live        int64
		want        bool
	}{
		"labels, and half of memory is live":             {update: change(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), live: 640},
		"labels, and most of memory is live":             {update: change(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), live: 650, want: true},
		"status, and most of memory is live":             {update: change(func(p *corev1.Pod) { p.Status.Phase = "Running" }), subresource: "status", live: 999},
		"the last finalizer, and most of memory is live": {update: change(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), live: 999},
		"a change of spec that adds 257 bytes":           {update: change(func(p *corev1.Pod) { p.Generation++; p.Spec.NodeName = strings.Repeat("n", 257) }), want: true},
		"a change of spec that adds 256 bytes":           {update: change(func(p *corev1.Pod) { p.Generation++; p.Spec.NodeName = strings.Repeat("n", 256) })},
		"a small change, and most of memory is live":     {update: change(func(p *corev1.Pod) { p.Generation++ }), live: 650, want: true},
		"a change of labels":                             {update: change(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })},
		"a finalizer":                                    {update: change(func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} })},
		"status":                                         {update: change(func(p *corev1.Pod) { p.Status.Phase = "Running" }), subresource: "status"},
		"an action on the spec":                          {update: change(func(p *corev1.Pod) { p.Generation++ }), subresource: "suspend"},
		"a deletion in the foreground":                   {update: change(func(p *corev1.Pod) { p.Generation++; p.DeletionTimestamp = &metav1.Time{} })},
		"an update that is refused": {update: func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
			return nil, nil, errors.New("refused")
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Resource: "pods", Subresource: c.subresource})
			g := New(usedUp, fixed(c.live, 1000))
			s := guarded{Interface: &inner{object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 1}}}, guard: g}
			s.size = func(obj runtime.Object) int { return len(obj.(*corev1.Pod).Spec.NodeName) }
			err := s.GuaranteedUpdate(ctx, "key", nil, false, nil, c.update, nil)
			if isInsufficient(err) != c.want {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestFullStore wants the error of a full etcd to say what helps, and the state to be seen until a write succeeds.
func TestFullStore(t *testing.T) {
	for name, store := range map[string]*member{"an embedded etcd": {}, "an external etcd": nil} {
		t.Run(name, func(t *testing.T) {
			g := New(nil, fixed(0, math.MaxInt64))
			if store != nil {
				g = New(store, fixed(0, math.MaxInt64))
			}
			next := &inner{err: rpctypes.ErrNoSpace}
			s := guarded{Interface: next, guard: g}
			if err := s.Create(t.Context(), "key", &corev1.Pod{}, nil, 0); !isInsufficient(err) || !strings.Contains(err.Error(), "delete JobSets in the background") {
				t.Errorf("error is %v", err)
			}
			if store != nil {
				if store.told != 1 {
					t.Error("maintenance was not woken")
				}
				store.full = true
			}
			if line := g.line(); !strings.HasPrefix(line, "[!]storage-space used up") {
				t.Errorf("line is %q", line)
			}
			if store != nil {
				store.full = false
			}
			next.err = nil
			if err := s.Create(t.Context(), "key", &corev1.Pod{}, nil, 0); err != nil {
				t.Error(err)
			}
			if line := g.line(); !strings.HasPrefix(line, "[+]storage-space ok") {
				t.Errorf("line is %q", line)
			}
		})
	}
}

func TestReadyzLine(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[+]ping ok\n"))
		_, _ = w.Write([]byte("readyz check passed\n"))
	})
	g := New(usedUp, fixed(0, math.MaxInt64))
	for path, want := range map[string]string{
		"/readyz?verbose": "[!]storage-space low: creations and changes of spec are refused (reserve)\n[+]ping ok\nreadyz check passed\n",
		"/readyz":         "[+]ping ok\nreadyz check passed\n",
		"/livez?verbose":  "[+]ping ok\nreadyz check passed\n",
	} {
		recorder := httptest.NewRecorder()
		g.WithReadyzLine(handler).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != http.StatusOK || recorder.Body.String() != want {
			t.Errorf("%s: %d: %q", path, recorder.Code, recorder.Body.String())
		}
	}
}
