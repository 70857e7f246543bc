// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults are the weights of what happens in a history. Each history does without some of it.
type faults struct {
	objects, discovery, reads, watches, api, lag, restarts, time int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		objects: simulation.OneOf(d, 5, 20), discovery: simulation.OneOf(d, 0, 1, 4), reads: simulation.OneOf(d, 0, 1, 4), watches: simulation.OneOf(d, 0, 2),
		api: simulation.OneOf(d, 0, 1, 4), lag: simulation.OneOf(d, 0, 1), restarts: simulation.OneOf(d, 0, 0, 1), time: 10,
	}
}

// step lets something happen.
func (e *env) step() {
	f := e.faults
	e.Happen([]simulation.Happening{
		{Weight: f.objects, Do: e.changeObjects},
		{Weight: f.discovery, Do: func() { e.turnWeather("discovery") }},
		{Weight: f.reads, Do: func() { e.turnWeather("list", "watch") }},
		{Weight: f.watches, Do: e.endWatches},
		{Weight: f.api, Do: e.turnAPI},
		{Weight: f.lag, Do: e.lag},
		{Weight: f.restarts, Do: e.restart},
		{Weight: f.time, Do: func() { e.pass(simulation.OneOf(e.Dice, time.Second, 9*time.Second, 30*time.Second)) }},
		{Weight: 2, Do: e.want},
	})
	e.pass(time.Duration(1+e.Dice.IntN(3000)) * time.Millisecond)
	e.check()
}

// want lets a caller want to know a Workload.
func (e *env) want() {
	if !e.process.wanted {
		e.Note("somebody wants to know")
		e.turned = time.Now()
	}
	e.process.wanted = true
	e.process.Want()
}

func (e *env) restart() {
	e.stop()
	e.Seen["restarts"]++
	e.start()
}

func (e *env) turnWeather(verbs ...string) {
	verb, t := e.weather.Turn(e.Dice, verbs...)
	if verb == "discovery" {
		e.turned = time.Now()
	}
	e.Note("%s: %+v", verb, t)
	e.Seen["trouble of "+verb]++
}

func (e *env) endWatches() {
	expired := e.Dice.Percent(50)
	e.Note("watches end, expired: %t", expired)
	e.Seen["ends of watches"]++
	e.server.EndWatches(expired)
}

func (e *env) lag() {
	lag := simulation.OneOf(e.Dice, 0, time.Second, maxLag)
	e.Note("watches lag %s", lag)
	e.server.SetLag(lag)
}

// turnAPI installs or removes the API. It may be away for a moment only.
func (e *env) turnAPI() {
	if !e.served {
		e.install()
		return
	}
	e.remove()
	e.Seen["removals"]++
	if e.Dice.Percent(40) {
		e.pass(time.Duration(1+e.Dice.IntN(12)) * time.Second)
		e.check()
		e.install()
	}
}

// changeObjects creates, changes, deletes or replaces a Workload.
func (e *env) changeObjects() {
	if !e.served {
		return
	}
	resource, name := workloads.GroupResource(), fmt.Sprintf("w%d", e.Dice.IntN(3))
	w := e.server.Get(resource, namespace, name)
	switch {
	case w == nil:
		e.create(name)
	case e.Dice.Percent(40):
		e.server.Change(resource, w, func(next *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(next.Object, e.Dice.Percent(50), "spec", "active")
		})
		e.Note("Workload %s is changed", name)
	case e.Dice.Percent(40):
		e.server.Delete(resource, w)
		e.Note("Workload %s is deleted", name)
	default:
		e.server.Change(resource, w, func(next *unstructured.Unstructured) { next.SetFinalizers(nil) })
		e.server.Delete(resource, w)
		e.Note("Workload %s is gone", name)
		if e.Dice.Percent(50) {
			e.create(name)
			e.Seen["Workloads replaced"]++
		}
	}
	e.truth.note(e)
}
