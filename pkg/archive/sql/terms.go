// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// hashSize is how much of a hash is stored. With 128 bits, two values with one hash cannot be found.
	hashSize = 16
	// maxLabels is by how many labels a run can be selected: the first ones, sorted by key.
	maxLabels = 256
)

// The subjects of terms that are not fields of queries.
const (
	subjectAll      = "all"
	subjectLabel    = "label"
	subjectLabelKey = "label key"
	subjectDuration = "duration"
)

// term selects runs. It is a hash of what they have in common.
type term [hashSize]byte

// scope is where a term selects runs.
type scope struct {
	namespace string
	all       bool
}

// term returns the term for a subject and its parts. Lengths keep parts apart, whatever they contain.
func (s scope) term(subject string, parts ...string) term {
	if s.all {
		return term(digest(append([]string{"", subject}, parts...)))
	}
	return term(digest(append([]string{"namespace", s.namespace, subject}, parts...)))
}

// digest returns a hash of a list of strings.
func digest(parts []string) []byte {
	hash := sha256.New()
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write([]byte(part))
	}
	return hash.Sum(nil)[:hashSize]
}

// digestKey returns what a run is known by in the database.
func digestKey(key api.Key) []byte { return digest([]string{"key", key.String()}) }

// states are the states that a run can have, and an empty one for those that are not known.
var states = []archive.RunState{archive.RunCompleted, archive.RunFailed, archive.RunCancelled, archive.RunDeleted, ""}

// termsOf returns the terms by which a run is found, without repetition.
func termsOf(run *archive.Run, began, ended int64) []term {
	state := run.State
	if !slices.Contains(states, state) {
		state = ""
	}
	subjects := [][]string{
		{subjectAll},
		{subjectDuration, durationClassOf(ended - began)},
		{string(api.FieldName), run.Name},
		{string(api.FieldState), string(state)},
		{string(api.FieldUser), run.User},
		{string(api.FieldQueue), run.Queue},
		{string(api.FieldKind), run.Object.Kind},
		{string(api.FieldObject), run.Object.Name},
	}
	keys := slices.Sorted(maps.Keys(run.Labels))
	for _, key := range keys[:min(len(keys), maxLabels)] {
		subjects = append(subjects, []string{subjectLabel, key, run.Labels[key]}, []string{subjectLabelKey, key})
	}
	subjects = append(subjects, failuresOf(run, api.FieldCause, func(f archive.RunFailure) string { return f.Reason })...)
	subjects = append(subjects, failuresOf(run, api.FieldNode, func(f archive.RunFailure) string { return f.Node })...)

	var terms []term
	seen := map[term]bool{}
	for _, in := range []scope{{all: true}, {namespace: run.Namespace}} {
		for _, parts := range subjects {
			if t := in.term(parts[0], parts[1:]...); !seen[t] {
				seen[t] = true
				terms = append(terms, t)
			}
		}
	}
	return terms
}

// failuresOf returns a subject for each value that the failures have. A run without any is found by the empty value.
func failuresOf(run *archive.Run, field api.Field, value func(archive.RunFailure) string) [][]string {
	var subjects [][]string
	for _, failure := range run.Failures {
		if v := value(failure); v != "" {
			subjects = append(subjects, []string{string(field), v})
		}
	}
	if subjects == nil {
		subjects = append(subjects, []string{string(field), ""})
	}
	return subjects
}

// durationClass is a range of durations in microseconds, from least to below.
type durationClass struct {
	name         string
	least, below int64
}

// durationClasses are all durations: those below a second, then each class to four times the one before, then those above two years.
var durationClasses = func() []durationClass {
	const last = 14
	classes := []durationClass{{name: "0", below: time.Second.Microseconds()}}
	for i := 1; i <= last; i++ {
		least := classes[i-1].below
		classes = append(classes, durationClass{name: strconv.Itoa(i), least: least, below: 4 * least})
	}
	classes[last].below = endless
	return classes
}()

func durationClassOf(microseconds int64) string {
	for _, class := range durationClasses {
		if microseconds < class.below {
			return class.name
		}
	}
	return durationClasses[len(durationClasses)-1].name
}

// join returns the terms as they are stored with a run.
func join(terms []term) []byte {
	joined := make([]byte, 0, len(terms)*hashSize)
	for _, t := range terms {
		joined = append(joined, t[:]...)
	}
	return joined
}

// split returns the terms that are stored with a run. What is left of a damaged list is returned.
func split(joined []byte) []term {
	terms := make([]term, 0, len(joined)/hashSize)
	for chunk := range slices.Chunk(joined, hashSize) {
		if len(chunk) == hashSize {
			terms = append(terms, term(chunk))
		}
	}
	return terms
}
