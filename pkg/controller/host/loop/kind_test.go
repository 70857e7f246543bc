// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
)

// kind is the kind of the objects of a rig.
type kind struct {
	loop.Defaults[jobSet, string, int]
	*rig
}

var _ loop.Kind[jobSet, string, int, int] = kind{}

func (k kind) Owner(cache.ObjectName) (jobSet, error) { k.note("owner"); return k.cached, k.err }

func (k kind) Forgotten(cache.ObjectName) { k.note("forgotten") }

func (k kind) Absent(context.Context, cache.ObjectName) error { k.note("absent"); return nil }

func (k kind) Waits(context.Context, cache.ObjectName, jobSet) (bool, error) {
	k.note("waits")
	return k.waits, k.err
}

func (k kind) Children(context.Context, cache.ObjectName, jobSet) (*string, []consistency.Child, error) {
	k.note("children")
	return new("seen"), []consistency.Child{{UID: "child"}}, nil
}

func (k kind) Complete(context.Context, cache.ObjectName, *string) (bool, error) {
	k.note("complete")
	return k.lags, k.err
}

func (k kind) Decide(string) int {
	k.note("decide")
	k.decided++
	return k.decided
}

func (k kind) Lags(p int) bool { return p <= len(k.behind) && k.behind[p-1] }

func (k kind) Claim(context.Context, *string, int) (again bool, err error) {
	if len(k.claims) == 0 {
		return false, nil
	}
	k.note("claim")
	again, k.claims = k.claims[0], k.claims[1:]
	return again, nil
}

func (k kind) Questions(p int) []string {
	if k.questions == nil {
		return k.Defaults.Questions(p)
	}
	return k.questions()
}

func (k kind) Answer(ctx context.Context, obs *string, p int) error {
	if k.answer == nil {
		return k.Defaults.Answer(ctx, obs, p)
	}
	return k.answer()
}

func (k kind) Apply(context.Context, *string, int) (int, error) { return k.apply() }

func (k kind) Conclude(*string, int, int) outcome { return k.conclude() }
