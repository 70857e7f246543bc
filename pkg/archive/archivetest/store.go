// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archivetest has a store of runs in memory, for tests of what uses a store.
package archivetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Store keeps runs in memory.
type Store struct {
	mutex   sync.Mutex
	runs    map[archive.Key]api.Run
	err     error
	queries []archive.Query
}

var _ archive.Store = &Store{}

// New returns a store with runs.
func New(runs ...api.Run) *Store {
	s := &Store{runs: map[archive.Key]api.Run{}}
	for i := range runs {
		s.runs[archive.KeyOf(&runs[i])] = *runs[i].DeepCopy()
	}
	return s
}

// Fail makes every method return the error, until it is called with nil.
func (s *Store) Fail(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
}

// Queries returns all queries of List.
func (s *Store) Queries() []archive.Query {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.queries)
}

// Put implements archive.Store.
func (s *Store) Put(_ context.Context, runs []api.Run) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range runs {
		key := archive.KeyOf(&runs[i])
		if old, stored := s.runs[key]; s.err == nil && (!stored || !old.EndTime.After(runs[i].EndTime.Time)) {
			s.runs[key] = *runs[i].DeepCopy()
		}
	}
	return s.err
}

// Missing implements archive.Store.
func (s *Store) Missing(_ context.Context, runs []archive.Ended) (missing []archive.Key, _ error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, run := range runs {
		if _, stored := s.runs[run.Key]; !stored {
			missing = append(missing, run.Key)
		}
	}
	return missing, s.err
}

// Get implements archive.Store.
func (s *Store) Get(_ context.Context, namespace, name string) (*api.Run, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	for _, run := range s.runs {
		if run.Namespace == namespace && run.Name == name {
			return run.DeepCopy(), nil
		}
	}
	return nil, fmt.Errorf("reading run %s/%s: %w", namespace, name, archive.ErrNotFound)
}

// List implements archive.Store. The token names the run at the end of the page before, and the query.
func (s *Store) List(_ context.Context, query archive.Query) (*archive.Page, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.queries = append(s.queries, query)
	if s.err != nil {
		return nil, s.err
	}
	var found []api.Run
	for _, run := range s.runs {
		if matches(&run, query) {
			run.Details = nil
			found = append(found, *run.DeepCopy())
		}
	}
	slices.SortFunc(found, func(a, b api.Run) int {
		return cmp.Or(b.EndTime.Compare(a.EndTime.Time), strings.Compare(string(a.UID), string(b.UID)))
	})
	if query.Continue != "" {
		of, last, _ := strings.Cut(query.Continue, "|")
		at := slices.IndexFunc(found, func(run api.Run) bool { return string(run.UID) == last })
		if of != identity(query) || at < 0 {
			return nil, archive.ErrGone
		}
		found = found[at+1:]
	}
	limit := query.Limit
	if limit == 0 {
		limit = archive.MaxLimit
	}
	if len(found) <= limit {
		return &archive.Page{Runs: found}, nil
	}
	return &archive.Page{Runs: found[:limit], Continue: identity(query) + "|" + string(found[limit-1].UID)}, nil
}

// identity is what all pages of a query have in common.
func identity(query archive.Query) string {
	query.Continue, query.Limit = "", 0
	return fmt.Sprintf("%q", fmt.Sprint(query))
}

// matches returns whether a run is selected.
func matches(run *api.Run, query archive.Query) bool {
	if query.Namespace != "" && run.Namespace != query.Namespace || query.Labels != nil && !query.Labels.Matches(labels.Set(run.Labels)) {
		return false
	}
	return !slices.ContainsFunc(query.Fields, func(wanted archive.Requirement) bool { return has(run, wanted) == wanted.Not })
}

// has returns whether a field of a run has the value, whatever is wanted.
func has(run *api.Run, wanted archive.Requirement) bool {
	compare, known := fields[wanted.Field]
	return known && compare(run, wanted.Value)
}

// fields are what each field compares.
var fields = map[archive.Field]func(run *api.Run, value string) bool{
	archive.FieldName:   func(run *api.Run, value string) bool { return run.Name == value },
	archive.FieldState:  func(run *api.Run, value string) bool { return string(run.State) == value },
	archive.FieldUser:   func(run *api.Run, value string) bool { return run.User == value },
	archive.FieldQueue:  func(run *api.Run, value string) bool { return run.Queue == value },
	archive.FieldKind:   func(run *api.Run, value string) bool { return run.Object.Kind == value },
	archive.FieldObject: func(run *api.Run, value string) bool { return run.Object.Name == value },
	archive.FieldCause: func(run *api.Run, value string) bool {
		return slices.ContainsFunc(run.Failures, func(f api.RunFailure) bool { return f.Reason == value })
	},
	archive.FieldNode: func(run *api.Run, value string) bool {
		return slices.ContainsFunc(run.Failures, func(f api.RunFailure) bool { return f.Node == value })
	},
	archive.FieldBeganAfter:  func(run *api.Run, value string) bool { return !run.BeginTime.Time.Before(at(value)) },
	archive.FieldBeganBefore: func(run *api.Run, value string) bool { return run.BeginTime.Time.Before(at(value)) },
	archive.FieldEndedAfter:  func(run *api.Run, value string) bool { return !run.EndTime.Time.Before(at(value)) },
	archive.FieldEndedBefore: func(run *api.Run, value string) bool { return run.EndTime.Time.Before(at(value)) },
}

// at returns the time of a value. The API has checked that it is one.
func at(value string) time.Time {
	at, _ := time.Parse(time.RFC3339, value)
	return at
}

// Delete implements archive.Store.
func (s *Store) Delete(_ context.Context, namespace, name string, uid types.UID) (*api.Run, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	for key, run := range s.runs {
		if run.Namespace == namespace && run.Name == name && run.UID == uid {
			delete(s.runs, key)
			run.Details = nil
			return &run, nil
		}
	}
	return nil, archive.ErrNotFound
}

// Prune implements archive.Store. It is not supported.
func (*Store) Prune(context.Context, time.Time, int64, int) (int, error) {
	return 0, errors.ErrUnsupported
}

// Usage implements archive.Store.
func (s *Store) Usage(context.Context) (archive.Usage, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return archive.Usage{Runs: int64(len(s.runs))}, s.err
}

// Close implements archive.Store.
func (*Store) Close() error { return nil }
