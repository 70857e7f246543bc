// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// deleter is a client of an API that answers deletions with the errors of a function, and counts them.
type deleter struct {
	Client[*batchv1.Job]
	answer func(call int, name string) error
	calls  int
}

func (d *deleter) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	d.calls++
	return d.answer(d.calls, name)
}

// oneByOne makes one request after another.
type oneByOne struct{}

func (oneByOne) Do(ctx context.Context, _ cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	var errs []error
	for i := range n {
		if err := do(ctx, i); !errors.Is(err, ErrSkipped) {
			errs = append(errs, err)
		}
	}
	return FirstErrors(errs...)
}

func (oneByOne) Forget(cache.ObjectName) {}

// accepting remembers nothing.
type accepting struct{ Consistency }

func (accepting) Deleted(cache.ObjectName, types.UID) {}

func writerOf(client *deleter) *Writer[*batchv1.Job] {
	host := &Host{Runner: oneByOne{}, Consistency: accepting{}, Clock: clock.RealClock{}, Shuffle: rand.Perm}
	return NewWriter(host, schema.GroupKind{Group: "batch", Kind: "Job"}, "jobs", "job", func(string) Client[*batchv1.Job] { return client })
}

func TestRefusedDeletionsEndThePass(t *testing.T) {
	const all = 100
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	denied := apierrors.NewForbidden(jobs, "j", errors.New(`admission webhook "w" denied the request: no`))
	always := func(err error) func(int, string) error { return func(int, string) error { return err } }
	for name, tc := range map[string]struct {
		answer   func(call int, name string) error
		want     int
		accepted int
	}{
		"all are accepted":          {always(nil), all, all},
		"all are gone":              {always(apierrors.NewNotFound(jobs, "j")), all, all},
		"all have changed":          {always(apierrors.NewConflict(jobs, "j", errors.New("the UID in the precondition"))), all, 0},
		"the controller lacks":      {always(apierrors.NewForbidden(jobs, "j", errors.New(`User "u" cannot delete resource "jobs" in API group "batch" in the namespace "ns"`))), 1, 0},
		"the API does not answer":   {always(errors.New("connection refused")), 1, 0},
		"the API has too much work": {always(apierrors.NewTooManyRequests("later", 1)), 1, 0},
		"a webhook denies all":      {always(denied), maxRefused, 0},
		"a webhook denies a few": {func(_ int, name string) error {
			if name < "job-03" {
				return denied
			}
			return nil
		}, all, all - 3},
		"a webhook denies every other one": {func(call int, _ string) error {
			if call%2 == 0 {
				return denied
			}
			return nil
		}, all, all / 2},
	} {
		t.Run(name, func(t *testing.T) {
			client := &deleter{answer: tc.answer}
			refs := make([]Ref, all)
			for i := range refs {
				refs[i] = Ref{Name: fmt.Sprintf("job-%02d", i), UID: types.UID(fmt.Sprint(i))}
			}
			accepted, err := writerOf(client).Delete(t.Context(), &metav1.ObjectMeta{Namespace: "ns", Name: "owner"}, refs)
			if client.calls != tc.want || accepted != tc.accepted {
				t.Errorf("%d requests, of which %d were accepted, want %d and %d", client.calls, accepted, tc.want, tc.accepted)
			}
			if (err == nil) != (tc.accepted == all) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestRefusalsDelayNoOthersForLong has a webhook that denies most deletions. The few others are made in one of the next
// passes, since each begins elsewhere.
func TestRefusalsDelayNoOthersForLong(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New(`admission webhook "w" denied the request: no`))
	client := &deleter{answer: func(_ int, name string) error {
		if name == "19" {
			return nil
		}
		return denied
	}}
	w := writerOf(client)
	var refs []Ref
	for i := range 20 {
		refs = append(refs, Ref{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))})
	}
	for range 200 {
		if accepted, _ := w.Delete(t.Context(), &metav1.ObjectMeta{Namespace: "ns", Name: "owner"}, refs); accepted > 0 {
			return
		}
	}
	t.Error("the deletion that is not denied was never made")
}
