// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

const (
	// askFirst, askSecond and askLater are the times after which a denied request is made again: after its first denial, its second one,
	// and later ones.
	askFirst, askSecond, askLater = 5 * time.Second, time.Minute, 2 * time.Minute
	// createApart and changeApart are the times between the creations, and the changes and deletions, of one owner that are due after a
	// second denial or a later one: 10 and 1 a minute. After fewChanges, this goes for the first denial of a change, too.
	createApart, changeApart = 6 * time.Second, time.Minute
	fewChanges               = maxRefused
	// maxAgain is how many requests for one owner are denied within a minute at most, of those whose first denial is longer ago than that.
	maxAgain = 10
	// perMinute is the time in which a request is denied twice at most, and maxAgain are.
	perMinute = time.Minute
	// denialsForgottenAfter is for how long a denial is remembered after it was due. A child that is no longer wanted is not asked for.
	denialsForgottenAfter = 10 * time.Minute
	// maxDenials is how many denials are remembered of one owner.
	maxDenials = 1000
)

// Denials remember the requests about an owner and its children that an API server has decided against, and make each of them again only at
// its time, whatever happens meanwhile. With a new generation of the owner, or another one of its name, each may be made at once; with
// another controller of the child it is another request.
//
// Where the children of a template share the reason, or all children of the kind, one request is made for all of them. Once one that was
// denied before is accepted, the reason may be gone: the others of the kind are due then, as far as the bounds allow.
type Denials struct {
	clock Clock

	mu     sync.Mutex
	owners map[cache.ObjectName]*denialsOf
	rooms  map[cache.ObjectName]*room
	// absent are the owners of which an API did not know something in the sync that goes on.
	absent sets.Set[cache.ObjectName]
}

// NewDenials returns Denials that know of none.
func NewDenials(clock Clock) *Denials {
	return &Denials{
		clock: clock, owners: map[cache.ObjectName]*denialsOf{}, rooms: map[cache.ObjectName]*room{}, absent: sets.New[cache.ObjectName](),
	}
}

// DenialsOf returns the Denials that the controller has, for requests that are made without a Writer.
func DenialsOf(host *Host) *Denials {
	if host.Denials == nil {
		host.Denials = NewDenials(host.Clock)
	}
	return host.Denials
}

// denialsOf are the denials of one owner.
type denialsOf struct {
	uid        types.UID
	generation int64
	requests   map[requestKey]*denial
	// status is whether the status of the owner was denied.
	status bool
	// slot is the latest time at which a request is due that was denied twice or more often.
	slot time.Time
	// again are the times within the last minute at which requests were denied whose first denial is longer ago, and underway is the number
	// of those that are being made.
	again    []time.Time
	underway int
	// looked is when forgotten denials were last dropped.
	looked time.Time
}

// denial is what is remembered of a request.
type denial struct {
	// err is the answer, and reach is whom it concerns.
	err   error
	reach reach
	// times is how often in a row the request was denied.
	times int
	// first is the first time, and last and before are the latest two.
	first, last, before time.Time
	// due is when the request may be made again.
	due time.Time
	// behind is the request for which this one waits; nil if it was denied itself.
	behind *Request
}

// Do makes a request unless its time has not come. Then the error is the earlier answer: see NotAsked and AskAgain.
func (d *Denials) Do(owner metav1.Object, what Request, do func() error) error {
	begun := d.clock.Now()
	again, earlier := d.begin(owner, what, begun)
	if earlier != nil {
		return earlier
	}
	return d.end(owner, what, begun, again, do())
}

// begin returns why the request is not made now; nil if it is. again means that it was denied long enough ago to count.
func (d *Denials) begin(owner metav1.Object, what Request, now time.Time) (again bool, earlier error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.of(owner)
	if of == nil {
		return false, nil
	}
	of.forget(now)
	if waits := of.waits(what, now); waits != nil {
		return false, &DeniedError{waits.err, waits.reach, waits.due, false}
	}
	known := of.requests[what.key(thisChild)]
	again = known != nil && now.Sub(known.first) >= perMinute || known == nil && of.full(what)
	if !again {
		return false, nil
	}
	of.again = within(perMinute, now, of.again)
	if len(of.again)+of.underway >= of.most(what) {
		return false, of.tooMany(what, known, now)
	}
	of.underway++
	return true, nil
}

// Waits returns the earlier answer to a request while its time has not come; nil if it may be made.
func (d *Denials) Waits(owner metav1.Object, what Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.of(owner)
	if of == nil {
		return nil
	}
	if waits := of.waits(what, d.clock.Now()); waits != nil {
		return &DeniedError{waits.err, waits.reach, waits.due, false}
	}
	return nil
}

// full returns whether no other denial is remembered of a request. The denial of the status always is.
func (of *denialsOf) full(what Request) bool {
	return len(of.requests) >= maxDenials && what.Verb != verbStatus
}

// most returns how many requests may have been denied within a minute for a request to be made. One is kept for a status that was denied.
func (of *denialsOf) most(what Request) int {
	if what.Verb == verbStatus || !of.status {
		return maxAgain
	}
	return maxAgain - 1
}

// waits returns the denial for which a request waits longest; nil if its time has come.
func (of *denialsOf) waits(what Request, now time.Time) (longest *denial) {
	for _, key := range what.keys() {
		known := of.requests[key]
		if known != nil && known.behind != nil {
			known.due = of.dueBehind(known, now)
		}
		if known == nil || !now.Before(known.due) || now.Before(known.last.Add(-perMinute)) { // the clock of the machine may be set back
			continue
		}
		if longest == nil || known.due.After(longest.due) {
			longest = known
		}
	}
	return longest
}

// tooMany returns why a request is not made whose time has come: too many others were denied within the last minute.
func (of *denialsOf) tooMany(what Request, known *denial, now time.Time) error {
	denied := &DeniedError{errTooMany, thisChild, now.Add(apartOf(what.Verb)), false}
	if len(of.again) > 0 {
		denied.next = of.again[0].Add(perMinute)
	}
	if known != nil {
		denied.err, denied.reach = known.err, known.reach
	}
	return denied
}

// end notes the answer to a request that was begun, and returns it.
func (d *Denials) end(owner metav1.Object, what Request, begun time.Time, again bool, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, now := d.of(owner), d.clock.Now()
	if of != nil && again {
		of.underway = max(0, of.underway-1)
	}
	d.noteAbsent(owner, what, err)
	if !Decided(err) {
		if err == nil && of != nil {
			of.accepted(what, begun, now)
		}
		if err == nil && what.Verb == verbDelete {
			d.deleted(owner, what.UID, now)
		}
		return err
	}
	of = d.ensure(owner)
	if again {
		of.again = append(of.again, now)
	}
	reach, first := what.reach(err), askFirst
	if reach == allChildren && d.lagsBehind(owner, now) {
		first = askFreed
	}
	return &DeniedError{err, reach, of.denied(what, reach, begun, now, first, err), true}
}

// of returns the denials of an owner; nil if there are none, or if they are about an earlier generation or another owner of the name.
func (d *Denials) of(owner metav1.Object) *denialsOf {
	name := cache.MetaObjectToName(owner)
	of := d.owners[name]
	if of != nil && (of.uid != owner.GetUID() || of.generation < owner.GetGeneration()) { // a cache may show an earlier one
		delete(d.owners, name)
		return nil
	}
	return of
}

// ensure returns the denials of an owner, which may be none yet.
func (d *Denials) ensure(owner metav1.Object) *denialsOf {
	of := d.of(owner)
	if of == nil {
		of = &denialsOf{uid: owner.GetUID(), generation: owner.GetGeneration(), requests: map[requestKey]*denial{}}
		d.owners[cache.MetaObjectToName(owner)] = of
	}
	return of
}

// Forget drops what is remembered of an owner that is gone.
func (d *Denials) Forget(owner cache.ObjectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owners, owner)
	delete(d.rooms, owner)
	d.absent.Delete(owner)
}
