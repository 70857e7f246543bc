// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
)

// StatusGuard bounds the writes of a status that another party changes back each time, such as a second controller. A controller that has
// not noticed yet that it no longer leads may see another state of the cluster. Then each write of one makes the other one write.
//
// A write is a reversal if another party has written the status since the controller did, and the controller wants what it has stored
// before. Times do not matter: they are new in each write. After three reversals within a minute, that status is written again at the times
// of the pace: see undone. A status that is new is always written, and so is one that only the controller itself has changed.
type StatusGuard struct {
	*Guard
	// last is the last status that the controller stored of each object, by UID.
	last *expiring.LRUExpireCache
}

// storedStatus is a status that the controller has stored.
type storedStatus struct {
	// version is the version of the object with it.
	version string
	content digest
}

// digest stands for a status.
type digest = [sha256.Size]byte

// NewStatusGuard returns a StatusGuard that knows of no write.
func NewStatusGuard(clock Clock) *StatusGuard {
	return &StatusGuard{NewGuard("status", clock), expiring.NewLRUExpireCacheWithClock(maxGuarded, clock)}
}

// StatusGuardOf returns the StatusGuard that the controller has.
func StatusGuardOf(host *Host) *StatusGuard {
	if host.Statuses == nil {
		host.Statuses = NewStatusGuard(host.Clock)
	}
	return host.Statuses
}

// Storing returns an UndoneError while the next status of an object is not to be written, because another party has changed it back each
// time. The noun names the kind.
func (g *StatusGuard) Storing(noun string, before, next metav1.Object) error {
	if !g.undone(before) {
		return nil
	}
	return g.check(statusOf(next), generationOf(next), func(again string) string {
		return fmt.Sprintf("another party changed the status of %s %s/%s %d times within a minute, each time after the controller had "+
			"written it; check that only one jobset-controller runs; the controller writes the status again at %s",
			noun, next.GetNamespace(), next.GetName(), maxReversals, again)
	})
}

// Stored notes that the next status of an object was stored.
func (g *StatusGuard) Stored(before, next, stored metav1.Object) {
	if g.undone(before) {
		g.noteAgain(statusOf(next), generationOf(next))
	}
	g.last.Add(stored.GetUID(), storedStatus{stored.GetResourceVersion(), contentOf(stored, nil)}, lastingStatus)
}

// lastingStatus is for how long a status that was stored is remembered: longer than the longest pause between two writes of it.
const lastingStatus = 30 * time.Minute

// undone returns whether another party has changed the last status that the controller stored, as far as is known.
func (g *StatusGuard) undone(before metav1.Object) bool {
	value, _ := g.last.Get(before.GetUID())
	was, known := value.(storedStatus)
	return known && was.version != before.GetResourceVersion() && was.content != contentOf(before, nil)
}

// statusOf returns what the write of a status is remembered by.
func statusOf(object metav1.Object) write {
	return write{child: statusKey{object.GetUID(), contentOf(object, timestamps)}, what: "status"}
}

type statusKey struct {
	uid    types.UID
	status digest
}

// timestamps are the times in a status.
var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// contentOf returns the digest of the status of an object without what the expression matches.
func contentOf(object metav1.Object, without *regexp.Regexp) digest {
	content, err := json.Marshal(reflect.Indirect(reflect.ValueOf(object)).FieldByName("Status").Interface())
	if err != nil {
		return digest{} // like each other status that cannot be encoded; none can be stored
	}
	if without != nil {
		content = without.ReplaceAll(content, nil)
	}
	return sha256.Sum256(content)
}
