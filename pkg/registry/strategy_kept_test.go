// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

func withVerb(ctx context.Context, verb string) context.Context {
	return request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: verb})
}

// Only an update, by a client that may lack fields, keeps what is left out.
func TestUpdatesKeepWhatTheyLeaveOut(t *testing.T) {
	backoff := &leaderworkerset.GroupRestartBackoff{BaseSeconds: ptr.To[int32](1)}
	for name, tc := range map[string]struct {
		ctx  context.Context
		want *leaderworkerset.GroupRestartBackoff
	}{
		"an update":                            {withVerb(t.Context(), "update"), backoff},
		"an update by a client of this server": {strategy.WithKnownFields(withVerb(t.Context(), "update")), nil},
		"a patch":                              {withVerb(t.Context(), "patch"), nil},
		"an action":                            {withVerb(t.Context(), "create"), nil},
		"no request":                           {t.Context(), nil},
	} {
		k := kinds()["LeaderWorkerSet"]
		prev := k.created(t).(*leaderworkerset.LeaderWorkerSet)
		prev.Spec.GroupRestartBackoff = backoff
		next := prev.DeepCopy()
		next.Spec.GroupRestartBackoff = nil
		k.main.PrepareForUpdate(tc.ctx, next, prev)
		wanted := prev.DeepCopy()
		if wanted.Spec.GroupRestartBackoff = tc.want; tc.want == nil {
			wanted.Generation++
		}
		if diff := cmp.Diff(wanted, next); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a client sends is stored, and what it does not replace stays.
func TestUpdatesStoreWhatTheySend(t *testing.T) {
	k := kinds()["JobSet"]
	prev := k.created(t).(*jobset.JobSet)
	prev.Status = jobset.JobSetStatus{
		Attempts: []jobset.Attempt{{Number: 1}}, ReadyMilliseconds: 5, Placement: &jobset.Placement{Restarts: 1}, StartTime: &metav1.Time{},
	}
	next := prev.DeepCopy()
	next.Status = jobset.JobSetStatus{Attempts: []jobset.Attempt{}, ReadyMilliseconds: 6, Restarts: 2}
	want := prev.DeepCopy()
	want.Status = jobset.JobSetStatus{Attempts: []jobset.Attempt{}, ReadyMilliseconds: 6, Restarts: 2, Placement: prev.Status.Placement}
	k.status.PrepareForUpdate(withVerb(t.Context(), "update"), next, prev)
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}

// Roles are matched by name, whatever their order. A role that is removed is gone.
func TestRolesKeepTheirOwnFields(t *testing.T) {
	k := kinds()["DisaggregatedSet"]
	role := func(name string, limit *int32) disaggregatedset.DisaggregatedRoleSpec {
		role := disaggregatedset.DisaggregatedRoleSpec{Name: name}
		role.Spec.RevisionHistoryLimit = limit
		return role
	}
	prev := k.created(t).(*disaggregatedset.DisaggregatedSet)
	prev.Spec.Roles = []disaggregatedset.DisaggregatedRoleSpec{role("a", ptr.To[int32](1)), role("b", ptr.To[int32](2)), role("c", nil)}
	next, want := prev.DeepCopy(), prev.DeepCopy()
	next.Spec.Roles = []disaggregatedset.DisaggregatedRoleSpec{role("c", nil), role("b", nil), role("d", nil)}
	want.Spec.Roles = []disaggregatedset.DisaggregatedRoleSpec{role("c", nil), role("b", ptr.To[int32](2)), role("d", nil)}
	want.Generation++
	k.main.PrepareForUpdate(withVerb(t.Context(), "update"), next, prev)
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}
