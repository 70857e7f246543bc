// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import "time"

// denied remembers a denial, and returns when the request may be made again: after the time given if it is the first one.
func (of *denialsOf) denied(what Request, reach reach, begun, now time.Time, first time.Duration, err error) (due time.Time) {
	err = shortened(err)
	of.status = of.status || what.Verb == verbStatus
	for _, key := range what.keys() {
		if key.reach > reach {
			break
		}
		known := of.requests[key]
		if known == nil {
			if key.reach == thisChild && of.full(what) {
				due = of.next(what.Verb, now, now.Add(askLater))
				continue
			}
			known = &denial{first: now}
			of.requests[key] = known
		}
		known.again(reach, begun, now, err)
		many := what.Verb != verbCreate && len(of.requests) > fewChanges
		if known.due = now.Add(waitAfter(known.times, first)); (known.times > 1 || many) && key.reach == reach {
			known.due = of.next(what.Verb, now, known.due)
		}
		known.keepApart(key)
		if known.due.After(due) {
			due = known.due
		}
	}
	return due
}

// again notes that a request was denied which had begun at that time.
func (n *denial) again(reach reach, begun, now time.Time, err error) {
	n.err, n.reach, n.behind = err, reach, nil
	if n.times == 0 || !begun.Before(n.last) { // else another request was under way at the same time
		n.times, n.before = n.times+1, n.last
	}
	n.last = now
}

// waitAfter returns how long a request waits after it was denied so often in a row.
func waitAfter(times int, first time.Duration) time.Duration {
	switch times {
	case 1:
		return first
	case 2:
		return askSecond
	}
	return askLater
}

// apartOf returns the time between the requests of a verb that are due after a second denial or a later one.
func apartOf(verb string) time.Duration {
	if verb == verbCreate {
		return createApart
	}
	return changeApart
}

// next returns when a request is due, apart from the others. The status of the owner waits for nothing else.
func (of *denialsOf) next(verb string, now, due time.Time) time.Time {
	if verb == verbStatus {
		return due
	}
	if apart := of.slot.Add(apartOf(verb)); apart.After(due) && of.slot.After(now) {
		due = apart
	}
	of.slot = due
	return due
}

// keepApart makes a request about one child due no earlier than a minute after the last but one time at which it was denied.
func (n *denial) keepApart(key requestKey) {
	if earliest := n.before.Add(perMinute); key.reach == thisChild && !n.before.IsZero() && n.due.Before(earliest) {
		n.due = earliest
	}
}

// accepted notes that the API has accepted a request which began at the time given. Later denials stay.
func (of *denialsOf) accepted(what Request, begun, now time.Time) {
	lifted := false
	for _, key := range what.keys() {
		if known := of.requests[key]; known != nil && !known.last.After(begun) && known.times > 0 {
			known.times, lifted = 0, true
			known.due = now
			known.keepApart(key)
		}
	}
	if !lifted {
		return
	}
	of.slot = time.Time{}
	for key, known := range of.requests {
		if key.verb == what.Verb && key.resource == what.Resource && known.due.After(now) && !known.last.After(begun) {
			known.due = now
			known.keepApart(key)
		}
	}
}

// forget drops the denials that were due long ago, from time to time.
func (of *denialsOf) forget(now time.Time) {
	if since := now.Sub(of.looked); since >= 0 && since < perMinute {
		return
	}
	of.looked = now
	for key, known := range of.requests {
		if now.Sub(known.due) >= denialsForgottenAfter {
			delete(of.requests, key)
		}
	}
}

// within returns the times that are less long ago than d.
func within(d time.Duration, now time.Time, times []time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) >= d {
		times = times[1:]
	}
	return times
}
