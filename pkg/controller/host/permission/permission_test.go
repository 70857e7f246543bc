// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusalsCountWhenTheyLast(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	away := apierrors.NewServiceUnavailable("away")
	type answer struct {
		after time.Duration
		err   error
		last  bool
	}
	for name, answers := range map[string][]answer{
		"no request":                     {{after: time.Hour, err: nil}},
		"a first refusal":                {{err: refused}},
		"refusals that last":             {{err: refused}, {LacksAfter - 1, refused, false}, {1, refused, true}, {time.Hour, refused, true}},
		"a permission that is given":     {{err: refused}, {LacksAfter, refused, true}, {1, nil, false}, {LacksAfter, refused, false}},
		"a server that was away before":  {{err: away}, {time.Hour, refused, false}, {LacksAfter, refused, true}},
		"a server that starts once more": {{err: refused}, {time.Second, away, false}, {time.Minute, refused, false}, {LacksAfter, refused, true}},
	} {
		t.Run(name, func(t *testing.T) {
			r, now := &Series{}, time.Unix(1, 0)
			for n, a := range answers {
				now = now.Add(a.after)
				r.Note(a.err, now)
				if got := r.Last(now); got != a.last {
					t.Errorf("answer %d: the permission counts as missing: %t, want %t", n, got, a.last)
				}
			}
		})
	}
}

func TestMissing(t *testing.T) {
	forbidden := func(why string) error {
		return fmt.Errorf("updating: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "train", errors.New(why)))
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                {nil, false},
		"a role that is missing":  {forbidden(`User "system:serviceaccount:s:c" cannot patch resource "services" in API group "" in the namespace "ns"`), true},
		"a quota":                 {forbidden("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), false},
		"a policy":                {forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"), false},
		"a server that is away":   {apierrors.NewServiceUnavailable(`User "u" cannot patch resource "services"`), false},
		"an error without answer": {errors.New(`User "u" cannot patch resource "services"`), false},
	} {
		if got := Missing(c.err); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
