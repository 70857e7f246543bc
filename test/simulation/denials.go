// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rules of every kind about requests that a server decides against, whatever else happens meanwhile: about children, and about the object
// itself, such as its status. A new generation of the object begins the count again, and so does a new controller of the child.
const (
	RuleDeniedChild  = "a request that is denied is made at most twice a minute, whatever happens"
	RuleDeniedObject = "requests about an object and its children that were denied before are made at most 10 times a minute"
)

const (
	deniedPerChild, deniedPerObject = 2, 10
	firstMinute                     = time.Minute
	// window is what counts as a minute. Pauses begin with a sync, which makes a request up to a second later.
	window = time.Minute - time.Second
)

// Request names a request about an object.
func Request(verb, kind string, object metav1.Object) string {
	request := verb + " " + kind + " " + object.GetName()
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		request += " of " + string(owner.UID)
	}
	return request
}

// Generation returns the UID and the generation of an object as an informer shows it.
func Generation[T metav1.Object](in *Informer[T], name string) string {
	object, found := in.Get(name)
	if !found {
		return ""
	}
	return fmt.Sprint(object.GetUID(), "/", object.GetGeneration())
}

// denials are the requests for one object that a server has decided against.
type denials struct {
	generation string
	// first is when a child was denied first, and latest are the latest times of that.
	first  map[string]time.Time
	latest map[string][]time.Time
	// again are the times at which children were denied whose first minute was over.
	again []time.Time
}

// checkDenied checks the rules about the requests of a sync that were denied. It returns how many of them have no other bound than these
// rules: requests whose reason is so new that they were due, and creations, each of which is made again after two minutes.
func (w *Worker) checkDenied(name string, q *queued, generation string, requests []string) (bounded int) {
	if d := &q.denials; d.first == nil || d.generation != generation {
		*d = denials{generation: generation, first: map[string]time.Time{}, latest: map[string][]time.Time{}}
	}
	d := &q.denials
	for _, request := range requests {
		w.World.Seen["denied requests"]++
		first, before := d.first[request]
		if !before {
			first = w.World.now
			d.first[request] = first
		}
		d.latest[request] = append(w.within(window, d.latest[request]), w.World.now)
		if n := len(d.latest[request]); n > deniedPerChild {
			w.World.Fail(RuleDeniedChild, "%s was denied %d times in %s", request, n, w.World.Since(d.latest[request][0]))
		}
		if w.World.Since(first) < 2*firstMinute || strings.HasPrefix(request, "create ") {
			bounded++
		}
		if w.World.Since(first) < firstMinute {
			continue
		}
		if d.again = append(w.within(window, d.again), w.World.now); len(d.again) > deniedPerObject {
			w.World.Fail(RuleDeniedObject, "%d requests for %s were denied in %s", len(d.again), name, w.World.Since(d.again[0]))
		}
	}
	return bounded
}
