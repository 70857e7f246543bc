// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions bounds the memory of the watch cache. The cache keeps the last hundred or more versions of objects, also of
// deleted ones, and most of them differ in their status only. Versions of an object share what did not change.
package versions

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

// Sharing returns a codec for storage whose new objects share what they have in common with the versions that it decoded before.
// Objects that the caller provides share nothing, because the caller may change them. A watch of etcd does not provide
// objects, and the watch cache, the only reader of those watches, never changes what it receives.
func Sharing(codec runtime.Codec) runtime.Codec {
	return &sharing{Codec: codec, last: map[types.UID]func() runtime.Object{}}
}

type sharing struct {
	runtime.Codec

	mu sync.Mutex
	// last returns the version of each object that was decoded last, or nil when nothing keeps that any more.
	last map[types.UID]func() runtime.Object
	// sweepAt is the number of entries at which those of objects that are gone are removed.
	sweepAt int
}

// minSweep is the number of entries below which none is removed.
const minSweep = 1024

// Decode decodes an object, which shares parts with an earlier version unless into is given.
func (s *sharing) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	decoded, kind, err := s.Codec.Decode(data, defaults, into)
	if obj, ok := decoded.(Object); ok && err == nil && into == nil && obj.GetUID() != "" {
		if previous, ok := s.get(obj.GetUID()).(Object); ok {
			obj.ShareSpec(previous)
			shareManagedFields(obj.GetManagedFields(), previous.GetManagedFields())
		}
		s.set(obj.GetUID(), obj.Weak()) // last, since another goroutine may read the object from here on
	}
	return decoded, kind, err
}

// get returns the version of an object that was decoded last, if something still keeps it.
func (s *sharing) get(uid types.UID) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[uid]; last != nil {
		return last()
	}
	return nil
}

func (s *sharing) set(uid types.UID, version func() runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[uid] = version
	if len(s.last) < max(s.sweepAt, minSweep) {
		return
	}
	maps.DeleteFunc(s.last, func(_ types.UID, version func() runtime.Object) bool { return version() == nil })
	s.sweepAt = 2 * len(s.last)
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
