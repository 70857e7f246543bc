// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults are the weights of what happens in a history. Each history does without some of it.
type faults struct {
	objects, discovery, reads, watches, api, lag, restarts, needs, time int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		objects: simulation.OneOf(d, 5, 20), discovery: simulation.OneOf(d, 0, 1, 4), reads: simulation.OneOf(d, 0, 1, 4), watches: simulation.OneOf(d, 0, 2),
		api: simulation.OneOf(d, 0, 1, 4), lag: simulation.OneOf(d, 0, 1), restarts: simulation.OneOf(d, 0, 0, 1), needs: simulation.OneOf(d, 1, 3), time: 10,
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
		{Weight: f.needs, Do: e.turnNeed},
		{Weight: f.time, Do: func() { e.pass(simulation.OneOf(e.Dice, time.Second, 9*time.Second, 30*time.Second, 90*time.Second)) }},
	})
	e.pass(time.Duration(1+e.Dice.IntN(3000)) * time.Millisecond)
	e.check()
}

// need lets a caller need the objects.
func (e *env) need() {
	p := e.process
	if p.needed.Load() {
		return
	}
	e.Note("the objects are needed")
	p.needed.Store(true)
	p.renewed = !p.asked.IsZero()
	p.asked, e.turned = time.Now(), time.Now()
}

func (e *env) turnNeed() {
	p := e.process
	if !p.needed.Load() {
		e.need()
		return
	}
	if e.Dice.Percent(50) {
		return
	}
	e.Note("nobody needs the objects")
	e.Seen["needs that end"]++
	p.needed.Store(false)
	p.unneeded, p.used = time.Now(), schema.GroupVersion{}
	if e.Dice.Percent(50) {
		e.pass(10 * time.Minute)
		e.check()
	}
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

// turnAPI serves a version, or ends that, perhaps for a moment only.
func (e *env) turnAPI() {
	version := simulation.OneOf(e.Dice, versions...)
	e.turned = time.Now()
	switch {
	case !e.serves(version):
		e.server.Serve(version, all)
		e.Note("%s is served", version)
		return
	case e.Dice.Percent(20):
		e.server.Withdraw(version)
		e.server.Serve(version, some)
		e.Note("%s lacks a kind", version)
		e.Seen["versions that lack a kind"]++
	default:
		e.server.Withdraw(version)
		e.Note("%s is not served", version)
		e.Seen["removals"]++
	}
	if e.Dice.Percent(40) {
		e.pass(time.Duration(1+e.Dice.IntN(12)) * time.Second)
		e.check()
		e.server.Serve(version, all)
		e.Note("%s is served again", version)
		e.turned = time.Now()
	}
}

// changeObjects creates, changes, deletes or replaces an object.
func (e *env) changeObjects() {
	resource, name := simulation.OneOf(e.Dice, resources...), fmt.Sprintf("g%d", e.Dice.IntN(3))
	object := e.server.Get(resource, namespace, name)
	switch {
	case object == nil:
		e.create(resource, name)
	case e.Dice.Percent(40):
		e.server.Change(resource, object, func(next *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(next.Object, int64(e.Dice.IntN(100)), "spec", "minMember")
		})
		e.Note("%s %s is changed", resource.Resource, name)
	default:
		e.server.Delete(resource, object)
		e.Note("%s %s is gone", resource.Resource, name)
		if e.Dice.Percent(50) {
			e.create(resource, name)
			e.Seen["objects replaced"]++
		}
	}
	e.note()
}
