// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// One answer may come from a kube-apiserver that does not serve the version yet.
func TestVersionThatIsMissedOnceStays(t *testing.T) {
	inBubble(t, "v1", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Second)
		f.served.Store("v2")
		f.run(servedPoll)
		f.served.Store("v2 v1")
		f.run(10 * time.Minute)
		diff(t, "state", State{Version: oldest}, f.Ask())
		diff(t, "watches", []string{"v1"}, f.watches())
	})
}

// An answer from the time when the objects were last needed is not known any more.
func TestAbsenceIsForgottenWhileNobodyNeedsToKnow(t *testing.T) {
	inBubble(t, "", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Minute)
		diff(t, "state", State{Absent: true}, f.Ask())
		f.needed.Store(false)
		f.run(time.Hour)
		f.served.Store("v1")
		f.needed.Store(true)
		diff(t, "state an hour later", State{}, f.Ask())
		f.run(time.Second)
		diff(t, "state after the question", State{Version: oldest}, f.Ask())
	})
}

func TestWhyNothingIsKnown(t *testing.T) {
	inBubble(t, "away", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Minute)
		diff(t, "state", State{Problem: "discovery (no endpoints)"}, f.Ask())
	})
}

// Objects that have been read once are not known for ever.
func TestOutdatedObjectsAreUnknown(t *testing.T) {
	inBubble(t, "v2", func(t *testing.T, f *fixture) {
		first := watch.NewFake()
		var begun, refused atomic.Bool
		f.client.PrependWatchReactor("podgroups", func(clienttesting.Action) (bool, watch.Interface, error) {
			switch {
			case refused.Load():
				return true, nil, apierrors.NewForbidden(newest.WithResource("podgroups").GroupResource(), "", nil)
			case begun.CompareAndSwap(false, true):
				return true, first, nil
			}
			return false, nil, nil
		})
		f.Ask()
		f.run(time.Second)
		diff(t, "state", State{Version: newest}, f.Ask())
		refused.Store(true)
		first.Stop()
		f.run(outdatedAfter / 2)
		diff(t, "state during a short outage", State{Version: newest}, f.Ask())
		turns := f.turns
		f.run(outdatedAfter + servedPoll)
		diff(t, "state", State{Problem: "podgroups (podgroups.example.com is forbidden: <nil>)"}, f.Ask())
		diff(t, "turns", turns+1, f.turns)
		refused.Store(false)
		f.run(2 * servedPoll)
		diff(t, "state once they are watched again", State{Version: newest}, f.Ask())
		diff(t, "turns", turns+2, f.turns)
	})
}
