// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	now := time.Unix(1000000, 0)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	looked, never := before(time.Minute), time.Time{}
	for name, tc := range map[string]struct {
		pace pace
		of   situation
		want time.Duration
	}{
		"a set that was never looked at":                         {pace{}, situation{pods: 10}, 0},
		"a set in which nothing has changed":                     {pace{looked: looked, pods: 10, listed: 10}, situation{pods: 10}, resync - time.Minute},
		"a new address of a small set":                           {pace{looked: looked, pods: 10, listed: 5, added: now}, situation{pods: 10}, minGather},
		"a new address of a large set":                           {pace{looked: looked, pods: 400, listed: 5, added: now}, situation{pods: 400}, 4 * time.Second},
		"a new address of a huge set":                            {pace{looked: looked, pods: 10000, listed: 5, added: now}, situation{pods: 10000}, maxGather},
		"a new address that has waited":                          {pace{looked: looked, pods: 400, listed: 5, added: before(3 * time.Second)}, situation{pods: 400}, time.Second},
		"pods that do not exist yet":                             {pace{looked: looked, pods: 5, listed: 5, added: now}, situation{pods: 400}, 4 * time.Second},
		"the last address":                                       {pace{looked: looked, pods: 400, listed: 400, added: now}, situation{pods: 400}, 0},
		"the last address, beside pods that have ended":          {pace{looked: looked, pods: 300, listed: 300, ended: 100, added: now}, situation{pods: 400}, 0},
		"the last address, shortly after a write":                {pace{looked: looked, pods: 400, listed: 400, added: now, wrote: before(300 * time.Millisecond)}, situation{pods: 400}, 500 * time.Millisecond},
		"the last address of a small set, shortly after a write": {pace{looked: looked, pods: 4, listed: 4, added: now, wrote: before(30 * time.Millisecond)}, situation{pods: 4}, 70 * time.Millisecond},
		"the address of the first pod":                           {pace{looked: looked, pods: 400, listed: 5, added: now, firstAt: now, wrote: now}, situation{pods: 400}, minInterval},
		"an address that must go":                                {pace{looked: looked, pods: 10, listed: 10, outdated: now}, situation{pods: 10}, removalDelay},
		"an address that must go of a huge set":                  {pace{looked: looked, pods: 10000, listed: 10000, outdated: now}, situation{pods: 10000}, removalDelay},
		"an address that must go of a set that is being deleted": {pace{looked: looked, pods: 10, listed: 10, outdated: now}, situation{pods: 10, ends: true}, removalDelayAtEnd},
		"an address that must go, beside a new one":              {pace{looked: looked, pods: 400, listed: 5, added: now, outdated: now}, situation{pods: 400}, removalDelay},
		"an address that must go, after a new one":               {pace{looked: looked, pods: 10, listed: 5, added: before(minGather / 2), outdated: now}, situation{pods: 10}, minGather / 2},
		"the last address, beside one that must go":              {pace{looked: looked, pods: 400, listed: 400, added: now, outdated: now}, situation{pods: 400}, 0},
		"an address that must go, shortly after a write":         {pace{looked: looked, pods: 10, listed: 10, outdated: before(removalDelay / 2), wrote: now}, situation{pods: 10}, removalDelay / 2},
		"a set to be looked at again at once":                    {pace{looked: never, pods: 10, listed: 10, wrote: now}, situation{pods: 10}, 0},
	} {
		if got := tc.pace.wait(now, tc.of); got != tc.want {
			t.Errorf("%s waits %s, want %s", name, got, tc.want)
		}
	}
}

// TestPacesAreForgotten keeps nothing of sets whose pods are gone.
func TestPacesAreForgotten(t *testing.T) {
	p, pod := newPaces(), newPod(podOf("js", 0, true))
	key := pod.key()
	p.change(key, func(of *pace) { of.count(pod, 1) })
	p.begin(key, time.Unix(1, 0), situation{pods: 1, force: true})
	p.again(key)
	p.change(key, func(of *pace) { of.count(pod, -1) })
	if len(p.all) != 0 {
		t.Errorf("%d paces without pods", len(p.all))
	}
}
