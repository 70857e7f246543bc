// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"math"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// goneVersion is the version of a slice that we delete.
const goneVersion = math.MaxUint64

// memory is what is known of sets beside what caches show. All of it may be lost.
type memory struct {
	// leaving is since when the cluster is to write the addresses of a Service that was taken.
	leaving *children.Notes[time.Time]

	mu sync.Mutex
	// versions are the versions of the slices that we have seen or written, by the set and the name.
	versions map[cache.ObjectName]map[string]uint64
	// changed are the slices that another client has changed since we wrote them, by the set and the name.
	changed map[cache.ObjectName]sets.Set[string]
	// busy are the sets whose slices are being written.
	busy map[cache.ObjectName]bool
	// outcomes are what became of the wishes of sets.
	outcomes map[cache.ObjectName]outcome
	// denials are what the API refuses.
	denials map[cache.ObjectName]*denial
}

func newMemory() *memory {
	return &memory{
		versions: map[cache.ObjectName]map[string]uint64{}, changed: map[cache.ObjectName]sets.Set[string]{},
		busy: map[cache.ObjectName]bool{}, leaving: children.NewNotes[time.Time](),
		outcomes: map[cache.ObjectName]outcome{}, denials: map[cache.ObjectName]*denial{},
	}
}

// forget drops what is known of a set. What the API refuses is kept for one that may ask again in a moment: it is not tried more often for
// that.
func (m *memory) forget(key cache.ObjectName, mayAsk bool) {
	m.leaving.Forget(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.outcomes, key)
	delete(m.versions, key)
	delete(m.changed, key)
	if !mayAsk {
		delete(m.denials, key)
	}
}

// writing notes that slices of a set are being written. The function that it returns notes the end, and calls changed
// if another client wrote one meanwhile.
func (m *memory) writing(key cache.ObjectName) (end func(cached []*discoveryv1.EndpointSlice, changed func())) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[key] = true
	return func(cached []*discoveryv1.EndpointSlice, changed func()) {
		m.mu.Lock()
		delete(m.busy, key)
		m.mu.Unlock()
		for _, slice := range cached {
			if m.foreign(key, slice, false) {
				changed()
				return
			}
		}
	}
}

// wrote notes what we wrote; goneVersion for a slice that we delete.
func (m *memory) wrote(key cache.ObjectName, name string, version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[key] == nil {
		m.versions[key] = map[string]uint64{}
	}
	m.versions[key][name] = max(version, m.versions[key][name])
}

// wasChanged notes that another client has changed a slice. One that this process has not seen before, it may not have changed.
func (m *memory) wasChanged(key cache.ObjectName, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, seen := m.versions[key][name]; !seen {
		return
	}
	if m.changed[key] == nil {
		m.changed[key] = sets.New[string]()
	}
	m.changed[key].Insert(name)
}

// isChanged returns whether another client has changed a slice since we wrote it.
func (m *memory) isChanged(key cache.ObjectName, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed[key].Has(name)
}

// changedBack notes that we have written a slice.
func (m *memory) changedBack(key cache.ObjectName, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed[key].Delete(name); len(m.changed[key]) == 0 {
		delete(m.changed, key)
	}
}

// kept notes that a slice was not deleted after all.
func (m *memory) kept(key cache.ObjectName, slice *discoveryv1.EndpointSlice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[key] != nil {
		m.versions[key][slice.Name] = versionOf(slice)
	}
}

// saw notes what a plan is made of.
func (m *memory) saw(key cache.ObjectName, managed []*discoveryv1.EndpointSlice) {
	for _, slice := range managed {
		m.wrote(key, slice.Name, versionOf(slice))
	}
}

// foreign returns whether another client has written or deleted a slice. While we write slices of the set, that is not known.
func (m *memory) foreign(key cache.ObjectName, slice *discoveryv1.EndpointSlice, gone bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, known := m.versions[key][slice.Name]
	switch {
	case gone:
		delete(m.versions[key], slice.Name)
		return known && version != goneVersion
	case m.busy[key]:
		return false
	}
	return !known || versionOf(slice) > version
}

func versionOf(slice *discoveryv1.EndpointSlice) uint64 {
	version, _ := strconv.ParseUint(slice.ResourceVersion, 10, 64) // a version that is not well-formed counts as absent
	return version
}
