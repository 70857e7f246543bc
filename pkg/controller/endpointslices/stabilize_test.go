// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	ruleRest = "every history comes to rest"
	ruleIs   = "at rest, who writes the addresses is as the set asks, and only they do"
	ruleWake = "at rest, nothing is written"
)

const (
	// calmFor is how long a calm lasts, of which pods come and go in the first part.
	calmFor, lively = 5 * time.Minute, 3 * time.Minute
	// restAfter is after which time all must have come to rest: what was refused is tried again after ten minutes.
	restAfter = 25 * time.Minute
	maxRounds = 400
)

// becalm lets caches follow and requests be carried out, or be refused for good.
func (e *env) becalm() {
	e.Note("the calm begins")
	e.EndTrouble()
	for e.deliverLate() {
	}
	if e.Dice.Percent(40) {
		e.process.sender.Dead = true // another process leads
	}
	if e.Dice.Percent(50) {
		e.refuse()
	}
	e.dns = simulation.OneOf(e.Dice, nil, nil, errNoRecord, errNoAnswer)
	for e.turn() {
	}
	e.calm = true
	e.rules.reset()
	if e.Dice.Percent(50) {
		e.Outcomes[simulation.Refused], e.Outcomes[simulation.Conflicted] = 40, 40 // servers are never perfect
	}
	for end := e.Now().Add(calmFor); e.Now().Before(end); {
		if end.Sub(e.Now()) > calmFor-lively && e.Dice.Percent(25) {
			e.livePods()
		}
		if e.auto && end.Sub(e.Now()) > calmFor-lively && e.Dice.Percent(6) {
			e.liveStatus()
		}
		if end.Sub(e.Now()) > calmFor-lively && e.Dice.Percent(3) {
			e.meddleWithSlices()
		}
		for n := 0; e.turn(); n++ {
			if n > maxRounds {
				e.Fail(ruleRest, "a calm has none")
			}
		}
		e.rules.check()
		e.Pass(2 * time.Second)
	}
}

// turn gives everybody a turn. It returns whether anybody used it.
func (e *env) turn() bool {
	busy := e.ShowAll(e.process.follows())
	busy = e.fill() || busy
	busy = e.watch() || busy
	busy = e.lookUp() || busy
	busy = e.sync() || busy
	if now := e.main.Last + e.aggregated.Last; now != e.seen {
		e.seen = now // whatever others do, they do because of what is stored
		e.createService()
		e.writeAsCluster()
		e.CollectGarbage()
		busy = true
	}
	e.rules.note()
	return busy
}

// stabilize lets all come to rest: nothing is refused any more.
func (e *env) stabilize() {
	e.Note("from here on nothing is refused")
	e.EndTrouble()
	clear(e.main.Refusals)
	if e.dns != nil {
		e.dns = simulation.OneOf(e.Dice, nil, errNoRecord)
	}
	end := e.Now().Add(restAfter)
	for n := 0; e.Now().Before(end); n++ {
		if n > maxRounds {
			e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
		}
		if e.turn() {
			continue
		}
		next := end
		for _, due := range []time.Time{e.worker.Due(), e.process.checkAt, e.process.filledAt} {
			if !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		e.Pass(max(next.Sub(e.Now()), 10*time.Millisecond))
	}
}

// checkRest checks that all is as the set asks.
func (e *env) checkRest() {
	before := e.main.Last
	e.worker.Add(name)
	for e.turn() {
	}
	if e.main.Last != before && !e.mutant.careless {
		e.Fail(ruleWake, "a sync changes something")
	}
	svc, managed := e.service(), e.managed()
	if svc == nil {
		e.Seen["at rest: no Service"]++
		if len(managed) > 0 {
			e.Fail(ruleIs, "there is no Service, and there is %s", managed[0].Name)
		}
		return
	}
	pods := sets.New[resolved]()
	listed := 0
	for _, pod := range e.pods.Objects {
		if pod.Status.PodIP != "" && !hasEnded(pod) {
			listed++
		}
		if e.resolves(pod) {
			pods.Insert(resolved{pod.UID, pod.Status.PodIP})
		}
	}
	byUs := e.ownable() && e.dns == nil
	if e.ownable() && e.dns != nil && e.process.failures < 3 {
		byUs = switched(svc) // it is not sure yet
	}
	if !byUs {
		e.Seen["at rest: by the cluster"]++
		if switched(svc) || len(managed) > 0 {
			e.Fail(ruleIs, "the cluster is to write, the selector is %v, and there are %d of our slices", svc.Spec.Selector, len(managed))
		}
		return
	}
	if listed == 0 {
		e.Seen["at rest: no pods"]++
		return
	}
	e.Seen["at rest: by us"]++
	tooMany := len(managed) > 1+e.rules.lateSlices // each of them keeps its addresses
	if names := e.names(isManaged); !switched(svc) || len(managed) == 0 || tooMany || !names.Equal(pods) {
		e.Fail(ruleIs, "we are to write, the selector is %v, there are %d of our slices, with %v, and the pods are %v", svc.Spec.Selector, len(managed), names, pods)
	}
	cluster := e.names(func(s *discoveryv1.EndpointSlice) bool { return !isManaged(s) })
	if cluster.Len() > 0 {
		e.Fail(ruleIs, "we write, and the cluster has %v", cluster)
	}
}
