// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging logs failures that repeat: each cause once, and from then on how often it has happened. What is retried for
// hours does not fill the log, and an outage of a server costs one line and not one for each object.
package logging

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

const (
	// every is how often the number of failures for a cause is logged while it lasts.
	every = 10 * time.Minute
	// overAfter is how long a cause of no particular object must not show to be over. Retries are at most two minutes apart.
	overAfter = 5 * time.Minute
	// maxCauses is the number of causes that are remembered for an object, and maxObjects that of objects. The oldest ones go
	// first, and are logged again when they show.
	maxCauses  = 4
	maxObjects = 1000
	// maxText is the length of a cause in bytes.
	maxText = 300
)

// General is the object of causes that are not about one object, such as a server that does not answer.
const General = ""

// Clock returns the time.
type Clock interface{ Now() time.Time }

// Repeats remembers causes of failures.
type Repeats struct {
	clock Clock

	mu sync.Mutex
	// objects holds the causes by object, and order the objects in the order in which they began to fail.
	objects map[string]map[string]*cause
	order   []string
}

// cause is one reason for failures of one object.
type cause struct {
	// text is the reason as it was first given.
	text string
	// times is how often it has happened, and logged how often it had when it was logged last.
	times, logged int
	// first, last and at are when it happened first and last, and when it was logged.
	first, last, at time.Time
}

// NewRepeats returns Repeats that remember nothing.
func NewRepeats(clock Clock) *Repeats {
	return &Repeats{clock: clock, objects: map[string]map[string]*cause{}}
}

// Failed logs a failure if its cause is new for the object, or has not been logged for ten minutes.
func (r *Repeats) Failed(logger klog.Logger, object string, err error, message string, keysAndValues ...any) {
	r.note(logger, object, err, message, func() { logger.Error(err, message, keysAndValues...) })
}

// Retried is like Failed for what is no error of this program, such as a server that is restarted.
func (r *Repeats) Retried(logger klog.Logger, object string, err error, message string, keysAndValues ...any) {
	r.note(logger, object, err, message, func() { logger.Info(message, append(keysAndValues, "reason", err)...) })
}

// note counts a failure, and logs it if it is new.
func (r *Repeats) note(logger klog.Logger, object string, err error, message string, log func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, id := r.clock.Now(), essence(err.Error())
	causes := r.of(object)
	known := causes[id]
	if known == nil {
		for _, other := range sorted(causes) {
			if object != General {
				other.report(logger, now, "Failed for another reason before")
			}
		}
		makeRoom(causes)
		causes[id] = &cause{text: text.TruncateWithEllipsis(err.Error(), maxText), times: 1, logged: 1, first: now, last: now, at: now}
		log()
		return
	}
	known.times++
	known.last = now
	if now.Sub(known.at) >= every {
		known.report(logger, now, message)
	}
}

// Succeeded logs how often an object has failed, if it did more than once, and forgets about it.
func (r *Repeats) Succeeded(logger klog.Logger, object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	causes, found := r.objects[object]
	if !found {
		return
	}
	for _, c := range sorted(causes) {
		c.report(logger, r.clock.Now(), "Succeeded after failures")
	}
	r.forget(object)
}

// Flush logs the causes that have not been logged for ten minutes, and those of no particular object that are over.
func (r *Repeats) Flush(logger klog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for id, c := range r.objects[General] {
		if now.Sub(c.last) >= overAfter {
			c.report(logger, now, "No failure for this reason any more")
			delete(r.objects[General], id)
		}
	}
	for _, object := range r.order {
		for _, c := range sorted(r.objects[object]) {
			if now.Sub(c.at) >= every {
				c.report(logger, now, "Failures go on")
			}
		}
	}
}

// of returns the causes of an object.
func (r *Repeats) of(object string) map[string]*cause {
	causes, found := r.objects[object]
	if found {
		return causes
	}
	if len(r.order) == maxObjects {
		r.forget(r.order[0])
	}
	causes = map[string]*cause{}
	r.objects[object] = causes
	r.order = append(r.order, object)
	return causes
}

func (r *Repeats) forget(object string) {
	delete(r.objects, object)
	r.order = slices.DeleteFunc(r.order, func(other string) bool { return other == object })
}

// makeRoom drops the cause that has not shown for the longest time if there are too many.
func makeRoom(causes map[string]*cause) {
	if len(causes) < maxCauses {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(causes)), func(a, b *cause) int { return a.last.Compare(b.last) })
	maps.DeleteFunc(causes, func(_ string, c *cause) bool { return c == oldest })
}

// report logs how often something has happened, unless that has been logged.
func (c *cause) report(logger klog.Logger, now time.Time, message string) {
	if c.times > c.logged {
		logger.Info(message, "reason", c.text, "times", c.times, "within", c.last.Sub(c.first).Round(time.Second))
	}
	c.logged, c.at = c.times, now
}

func sorted(causes map[string]*cause) []*cause {
	return slices.SortedFunc(maps.Values(causes), func(a, b *cause) int { return strings.Compare(a.text, b.text) })
}

// essence returns what errors with the same cause have in common. What differs from try to try, and from object to object, is
// left out: quoted names and addresses, names with their namespace, and numbers.
func essence(text string) string {
	const longest = 1000
	first, _, _ := strings.Cut(text[:min(len(text), longest)], "\n")
	var words []string
	for n, part := range strings.Split(first, `"`) {
		if n%2 == 1 {
			continue // it was quoted
		}
		for word := range strings.FieldsSeq(part) {
			if !strings.Contains(word, "/") {
				words = append(words, strings.Map(withoutDigits, word))
			}
		}
	}
	return strings.Join(words, " ")
}

func withoutDigits(c rune) rune {
	if c >= '0' && c <= '9' {
		return -1
	}
	return c
}
