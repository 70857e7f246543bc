// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// maxRequirements is how many requirements a query may have, of fields and labels together.
	maxRequirements = 32
	// maxValues is how many values a requirement of a label may list.
	maxValues = 100
	// maxShown is how much of a wrong value an error repeats.
	maxShown = 64
)

// ErrBadQuery is returned for a query that cannot be answered because of what it asks for. The message says what is allowed.
var ErrBadQuery = errors.New("bad query")

func badQuery(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadQuery}, args...)...)
}

// choice selects runs that have one of its terms.
type choice struct {
	terms []term
	rank  int
}

// ranks say which choice the runs are read by, when a query has several: the lowest, which probably selects the fewest.
var ranks = map[api.Field]int{
	api.FieldName: 0, api.FieldObject: 1, api.FieldNode: 2, api.FieldCause: 4, api.FieldUser: 5, api.FieldQueue: 6, api.FieldState: 8,
	api.FieldKind: 10,
}

const (
	rankLabel    = 3
	rankDuration = 7
	rankLabelKey = 9
	rankAll      = 11
)

// plan is how a query is answered. Times are in microseconds; a lower bound belongs to the range, an upper one does not.
type plan struct {
	in scope
	// nothing says that no run matches.
	nothing bool
	choices []choice
	// none are terms that the runs must not have.
	none                   []term
	beganFrom, beganBefore int64
	endedFrom, endedBefore int64
}

// planOf returns the plan for a query, or an error that wraps ErrBadQuery.
func planOf(query api.Query) (*plan, error) {
	if query.Limit < 0 {
		return nil, badQuery("the limit must not be negative, and is %d", query.Limit)
	}
	p := &plan{
		in:        scope{namespace: query.Namespace, all: query.Namespace == ""},
		beganFrom: beginless, beganBefore: endless, endedFrom: beginless, endedBefore: endless,
	}
	requirements, selectable := labels.Requirements{}, true
	if query.Labels != nil {
		requirements, selectable = query.Labels.Requirements()
	}
	p.nothing = !selectable
	if n := len(requirements) + len(query.Fields); n > maxRequirements {
		return nil, badQuery("the selectors of labels and fields must have at most %d requirements, and have %d", maxRequirements, n)
	}
	for _, requirement := range query.Fields {
		if err := p.field(requirement); err != nil {
			return nil, err
		}
	}
	for _, requirement := range requirements {
		if err := p.label(requirement); err != nil {
			return nil, err
		}
	}
	// A run ends when it begins, or later.
	p.endedFrom = max(p.endedFrom, p.beganFrom)
	p.choices = append(p.choices, choice{terms: []term{p.in.term(subjectAll)}, rank: rankAll})
	slices.SortStableFunc(p.choices, func(a, b choice) int { return cmp.Compare(a.rank, b.rank) })
	return p, nil
}

func (p *plan) field(r api.Requirement) error {
	rank, ok := ranks[r.Field]
	if !ok {
		return p.time(r)
	}
	match := p.in.term(string(r.Field), r.Value)
	switch {
	case !r.Not:
		p.choices = append(p.choices, choice{terms: []term{match}, rank: rank})
	case r.Field == api.FieldState:
		// There are few states, so those that remain are selected: most runs may have the one that is not wanted.
		var rest []term
		for _, state := range states {
			if string(state) != r.Value {
				rest = append(rest, p.in.term(string(r.Field), string(state)))
			}
		}
		p.choices = append(p.choices, choice{terms: rest, rank: rank})
	default:
		p.none = append(p.none, match)
	}
	return nil
}

func (p *plan) time(r api.Requirement) error {
	switch r.Field {
	case api.FieldBeganAfter, api.FieldBeganBefore, api.FieldEndedAfter, api.FieldEndedBefore:
	default:
		return badQuery("runs cannot be selected by the field %.*q", maxShown, r.Field)
	}
	if r.Not {
		return badQuery("the selector of field %s must use = or ==, and uses !=", r.Field)
	}
	at, err := time.Parse(time.RFC3339Nano, r.Value)
	if err != nil {
		return badQuery("the selector of field %s must have a time in RFC 3339, such as 2026-01-31T15:04:05Z, and has %.*q",
			r.Field, maxShown, r.Value)
	}
	// The stored times have no nanoseconds, so a time between two microseconds selects by the later one.
	microseconds := at.Add(time.Microsecond - 1).UnixMicro()
	switch r.Field {
	case api.FieldBeganAfter:
		p.beganFrom = max(p.beganFrom, microseconds)
	case api.FieldBeganBefore:
		p.beganBefore = min(p.beganBefore, microseconds)
	case api.FieldEndedAfter:
		p.endedFrom = max(p.endedFrom, microseconds)
	default:
		p.endedBefore = min(p.endedBefore, microseconds)
	}
	return nil
}

func (p *plan) label(r labels.Requirement) error {
	values := r.Values().List()
	if len(values) > maxValues {
		return badQuery("the selector of label %.*q must have at most %d values, and has %d", maxShown, r.Key(), maxValues, len(values))
	}
	terms := make([]term, len(values))
	for i, value := range values {
		terms[i] = p.in.term(subjectLabel, r.Key(), value)
	}
	key := p.in.term(subjectLabelKey, r.Key())
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		p.nothing = p.nothing || len(terms) == 0
		p.choices = append(p.choices, choice{terms: terms, rank: rankLabel})
	case selection.NotEquals, selection.NotIn:
		p.none = append(p.none, terms...)
	case selection.Exists:
		p.choices = append(p.choices, choice{terms: []term{key}, rank: rankLabelKey})
	case selection.DoesNotExist:
		p.none = append(p.none, key)
	default:
		return badQuery("the selector of label %.*q must use =, ==, !=, in, notin, or test whether the label exists, and uses %s",
			maxShown, r.Key(), r.Operator())
	}
	return nil
}

// scan reads the runs that have a term, newest first, within a range.
type scan struct {
	term term
	// from is the earliest end, and below the first position that is too new.
	from  int64
	below position
}

// scans returns what to read to find the runs after a position. Runs in one scan are in no other.
func (p *plan) scans(after position) []scan {
	if p.nothing {
		return nil
	}
	if p.beganBefore < endless && p.choices[0].rank > rankDuration {
		return p.durations(after)
	}
	var scans []scan
	for _, t := range p.choices[0].terms {
		scans = append(scans, scan{term: t, from: p.endedFrom, below: earlier(after, position{p.endedBefore, beginless})})
	}
	return scans
}

// durations returns a scan for each class of durations, because runs that began before a time are many, and not together in any order by
// end. What a scan reads in vain are runs that were going on at the time.
func (p *plan) durations(after position) []scan {
	var scans []scan
	for _, class := range durationClasses {
		from, before := max(p.endedFrom, plus(p.beganFrom, class.least)), min(p.endedBefore, plus(p.beganBefore, class.below))
		if from < before {
			below := earlier(after, position{before, beginless})
			scans = append(scans, scan{term: p.in.term(subjectDuration, class.name), from: from, below: below})
		}
	}
	return scans
}

// others returns the choices that a scan has not made.
func (p *plan) others() []choice {
	rest := p.choices
	if p.beganBefore == endless || p.choices[0].rank < rankDuration {
		rest = rest[1:]
	}
	return slices.DeleteFunc(slices.Clone(rest), func(c choice) bool { return c.rank == rankAll })
}

// plus adds a duration to a time. No sum is after all times.
func plus(microseconds, duration int64) int64 {
	if microseconds > math.MaxInt64-duration {
		return math.MaxInt64
	}
	return microseconds + duration
}
