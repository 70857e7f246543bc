// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestLeadersOfARequestedRestart shows when a pass waits for the cache of pods, while the API has the leader pods a and b of the set, and
// one of a StatefulSet before it.
func TestLeadersOfARequestedRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		request *leaderworkersetv1.RequestedRestart
		cached  []types.UID
		shown   bool
		lists   int
	}{
		"nothing is requested":            {shown: true},
		"all are to be found":             {request: &leaderworkersetv1.RequestedRestart{}, cached: []types.UID{"a", "b"}, shown: true, lists: 1},
		"one is not shown":                {request: &leaderworkersetv1.RequestedRestart{}, cached: []types.UID{"a"}, lists: 1},
		"found, and still there":          {request: &leaderworkersetv1.RequestedRestart{Found: true, Leaders: []types.UID{"a", "x"}}, cached: []types.UID{"a"}, shown: true},
		"found, and gone":                 {request: &leaderworkersetv1.RequestedRestart{Found: true, Leaders: []types.UID{"x"}}, cached: []types.UID{"a"}, shown: true, lists: 1},
		"found, and not shown yet":        {request: &leaderworkersetv1.RequestedRestart{Found: true, Leaders: []types.UID{"b"}}, cached: []types.UID{"a"}, lists: 1},
		"found, and of another owner":     {request: &leaderworkersetv1.RequestedRestart{Found: true, Leaders: []types.UID{"old"}}, shown: true, lists: 1},
		"there were none":                 {request: &leaderworkersetv1.RequestedRestart{Found: true}, shown: true},
		"the rest of a large set follows": {request: &leaderworkersetv1.RequestedRestart{GroupsLeft: new(int32)}, shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			owner := refusedOwner()
			owner.Status.Restart = tc.request
			s, lists := syncerOf(owner, fake.NewClientset(), clock.RealClock{}), 0
			s.deps.Leaders = func(context.Context, cache.ObjectName) ([]Child, error) {
				lists++
				child := func(uid, controller types.UID) Child { return Child{Ref: plan.Ref{UID: uid}, Controller: controller} }
				return []Child{child("a", "leaders"), child("b", "leaders"), child("old", "before")}, nil
			}
			obs := &plan.Observed{Set: owner, Leader: leaderOf(nil)}
			obs.Leader.UID = "leaders"
			for _, uid := range tc.cached {
				obs.Leaders = append(obs.Leaders, plan.Pod{Ref: plan.Ref{UID: uid}})
			}
			shown, err := s.leadersShown(t.Context(), obs)
			if err != nil || shown != tc.shown || lists != tc.lists {
				t.Errorf("shown: %t, after %d lists (%v); want %t, %d", shown, lists, err, tc.shown, tc.lists)
			}
		})
	}
}
