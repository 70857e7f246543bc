// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchcache bounds the memory that the watch cache and reads of etcd take. The cache keeps the last hundred or more versions
// of objects, also of deleted ones, and most of them differ in their status only. Versions of an object share what did not change.
package watchcache

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is an object whose versions can share parts.
type Object interface {
	runtime.Object
	metav1.Object
	// ShareSpec replaces the parts of the spec that are equal in another version of the object by the parts of that version.
	ShareSpec(other runtime.Object)
	// Weak returns a function that returns the object, or nil once nothing else refers to it.
	Weak() func() runtime.Object
}

// Sharing is a codec for storage whose new objects share what they have in common with the versions that it decoded before.
// Objects that the caller provides share nothing, because the caller may change them. A watch of etcd does not provide
// objects, and the watch cache, the only reader of those watches, never changes what it receives.
type Sharing struct {
	runtime.Codec

	mu sync.Mutex
	// last are the versions of all objects that were decoded last.
	last map[types.UID]version
	// sweepAt is the number of entries at which those of objects that are gone are removed.
	sweepAt int
}

// version is a version of an object.
type version struct {
	// object returns it, or nil once nothing else keeps it.
	object func() runtime.Object
	// bytes are its size in the storage.
	bytes int64
}

// NewSharing returns a codec that encodes and decodes with another one.
func NewSharing(codec runtime.Codec) *Sharing {
	return &Sharing{Codec: codec, last: map[types.UID]version{}}
}

// minSweep is the number of entries below which none is removed.
const minSweep = 1024

// Decode decodes an object, which shares parts with an earlier version unless into is given.
func (s *Sharing) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	decoded, kind, err := s.Codec.Decode(data, defaults, into)
	if obj, ok := decoded.(Object); ok && err == nil && into == nil && obj.GetUID() != "" {
		s.share(obj)
		s.set(obj.GetUID(), version{obj.Weak(), int64(len(data))}) // last, since another goroutine may read the object from here on
	}
	return decoded, kind, err
}

// share makes an object use parts of the version that was decoded last.
func (s *Sharing) share(obj runtime.Object) {
	next, ok := obj.(Object)
	if !ok {
		return
	}
	if previous, ok := s.get(next.GetUID()).(Object); ok {
		next.ShareSpec(previous)
		shareManagedFields(next.GetManagedFields(), previous.GetManagedFields())
	}
}

// get returns the version of an object that was decoded last, if something still keeps it.
func (s *Sharing) get(uid types.UID) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[uid]; ok {
		return last.object()
	}
	return nil
}

// size returns the bytes of an object in the storage; 0 if they are not known.
func (s *Sharing) size(obj runtime.Object) int64 {
	known, ok := obj.(Object)
	if !ok {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[known.GetUID()].bytes
}

func (s *Sharing) set(uid types.UID, next version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[uid] = next
	if len(s.last) >= max(s.sweepAt, minSweep) {
		s.sweep()
		s.sweepAt = 2 * len(s.last)
	}
}

// sweep removes objects that are gone. The caller holds the lock.
func (s *Sharing) sweep() {
	maps.DeleteFunc(s.last, func(_ types.UID, v version) bool { return v.object() == nil })
}

// bytes returns the number of objects that are kept, and their size in the storage.
func (s *Sharing) bytes() (objects, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	for _, v := range s.last {
		total += v.bytes
	}
	return int64(len(s.last)), total
}

// shareManagedFields lets entries of the same manager use the same set of fields.
func shareManagedFields(entries, previous []metav1.ManagedFieldsEntry) {
	for i := range entries {
		for j := range previous {
			if sameManager(&entries[i], &previous[j]) && entries[i].FieldsV1.Equal(*previous[j].FieldsV1) {
				entries[i].FieldsV1 = previous[j].FieldsV1
				break
			}
		}
	}
}

func sameManager(a, b *metav1.ManagedFieldsEntry) bool {
	return a.FieldsV1 != nil && b.FieldsV1 != nil && a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource
}
