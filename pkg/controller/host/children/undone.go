// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxReversals is how often the controller makes the same write again within reversalPeriod after another party has undone it.
	maxReversals   = 3
	reversalPeriod = time.Minute
	// lasting is how long a child must last for the next reversal to be the first one again.
	lasting = 5 * time.Minute
)

// pace are the times after which a contested write is made again, the last of which holds for all later ones. The other party undoes it at
// once, so that more attempts would only let pods start and stop.
var pace = []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute}

// undone is what is remembered of one write.
type undone struct {
	// owner is in whose name it was made. A write for another owner, or for another generation of it, is another write.
	owner string
	// at are the latest times at which it was made again.
	at times
	// late is how often it was made although it was contested.
	late int
	// incarnation is the child that it was last made for, if it is a deletion.
	incarnation types.UID
}

// times are the latest ones at which a write was made, at most maxReversals.
type times []time.Time

// and returns the times with another one. It shares nothing with them.
func (t times) and(now time.Time) times {
	return append(t[max(0, len(t)-maxReversals+1):len(t):len(t)], now)
}

// often returns whether the write was made three times within a minute.
func (t times) often() bool {
	return len(t) == maxReversals && t[maxReversals-1].Sub(t[0]) <= reversalPeriod
}

// wait returns how long after the last time the write is made again; 0 if it is not contested.
func (u undone) wait() time.Duration {
	if u.late == 0 && !u.at.often() {
		return 0
	}
	return pace[min(u.late, len(pace)-1)]
}

// next returns when the write may be made again.
func (u undone) next() time.Time {
	if len(u.at) == 0 {
		return time.Time{}
	}
	return u.at[len(u.at)-1].Add(u.wait())
}

// due returns whether the write may be made again. The clock of the machine may be set back.
func (u undone) due(now time.Time) bool {
	return u.wait() == 0 || !now.Before(u.next()) || now.Before(u.at[len(u.at)-1])
}

// again returns what is remembered once the write was made again.
func (u undone) again(now time.Time) undone {
	next := undone{owner: u.owner, at: u.at.and(now), late: u.late, incarnation: u.incarnation}
	if u.late > 0 || u.at.often() {
		next.late++
	}
	return next
}

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
