// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// maxReversals is how often the controller makes the same change of a child again within reversalPeriod after another
	// client has undone it. That client does so at once, so more attempts would only let pods start and stop.
	maxReversals   = 3
	reversalPeriod = time.Minute
)

// Reversals notice that another client undoes a change of a child again and again. A process that starts knows nothing of earlier ones.
type Reversals struct{ made *Notes[changesMade] }

// changesMade are the last times at which the same change was made.
type changesMade struct {
	change string
	at     times
}

// times are the latest ones at which a change was made, at most maxReversals.
type times []time.Time

// and returns the times with another one. It shares nothing with them.
func (t times) and(now time.Time) times {
	return append(t[max(0, len(t)-maxReversals+1):len(t):len(t)], now)
}

// often returns whether the change was made three times within a minute.
func (t times) often() bool {
	return len(t) == maxReversals && t[maxReversals-1].Sub(t[0]) <= reversalPeriod
}

// NewReversals returns Reversals that know of none.
func NewReversals(host *Host) *Reversals { return &Reversals{NotesOf[changesMade](host)} }

// Made notes that a change of a child of the owner was made. It names the incarnation of the child and what was wanted;
// another change of the owner's children ends the count.
func (r *Reversals) Made(owner cache.ObjectName, change string, now time.Time) {
	made := r.made.Noted(owner)
	if made.change != change {
		made = changesMade{change: change}
	}
	r.made.Note(owner, changesMade{change, made.at.and(now)})
}

// Contested returns whether the change was made three times within a minute. If it is to be made again, another client
// has undone it as often, and the controller should leave it.
func (r *Reversals) Contested(owner cache.ObjectName, change string) bool {
	made := r.made.Noted(owner)
	return made.change == change && made.at.often()
}

// Forget is for owners that are gone, and for changes that the controller has taken back itself.
func (r *Reversals) Forget(owner cache.ObjectName) { r.made.Forget(owner) }

// ManagerOf returns the field manager that wrote a field of an object last, such as spec and suspend; "" if that is not known.
func ManagerOf(object metav1.Object, path ...string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || !owns(entry.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if last.Manager == "" || last.Time.Before(entry.Time) {
			last = entry
		}
	}
	return last.Manager
}

// owns returns whether a set of fields has the path.
func owns(fields []byte, path []string) bool {
	for _, name := range path {
		var below map[string]json.RawMessage
		if json.Unmarshal(fields, &below) != nil {
			return false
		}
		next, found := below["f:"+name]
		if !found {
			return false
		}
		fields = next
	}
	return true
}
