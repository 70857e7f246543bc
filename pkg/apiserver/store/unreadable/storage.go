// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Wrap returns an etcd whose lists and watches have placeholders for what cannot be read, and whose other answers are
// errors about the object. It is meant to be below the watch cache. The configuration must come from Tolerate.
func Wrap(next storage.Interface, config *storagebackend.ConfigForResource) (storage.Interface, error) {
	c, ok := config.Codec.(*codec)
	if !ok {
		return nil, notTolerating(config)
	}
	return &store{Interface: next, of: c.of}, nil
}

type store struct {
	storage.Interface
	of *resource
}

// Get implements storage.Interface.
func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return s.of.interpret(key, s.Interface.Get(withReading(ctx, strict), key, opts, out))
}

// Delete implements storage.Interface. What the watch cache has is no suggestion if it is a placeholder.
func (s *store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.of.interpret(key, s.Interface.Delete(withReading(ctx, strict), key, out, preconditions, validate, readable(cached), opts))
}

// GuaranteedUpdate implements storage.Interface. What the watch cache has must not be a placeholder here: it has the
// version of the stored object, so that it would replace it.
func (s *store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	update := func(input runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if found, err := meta.Accessor(input); err == nil && res.ResourceVersion > 0 {
			if mismatch := s.of.named(s.of.absolute(key), found); mismatch != nil {
				return nil, nil, &damage{mismatch}
			}
		}
		return tryUpdate(input, res)
	}
	return s.of.interpret(key, s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, update, readable(cached)))
}

// readable returns the object, or nil if it is a placeholder.
func readable(obj runtime.Object) runtime.Object {
	if found, err := meta.Accessor(obj); err == nil && unreadable.Is(found) {
		return nil
	}
	return obj
}

// few is how many objects of a list may be unreadable, however many can be read.
const few = 20

// GetList implements storage.Interface.
func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.Interface.GetList(withReading(ctx, tolerant), key, opts, list); err != nil {
		return err
	}
	var seen tally
	err := meta.EachListItem(list, func(item runtime.Object) error {
		s.see(item, &seen)
		return nil
	})
	if err != nil {
		return err
	}
	return seen.check(s.of)
}

// Watch implements storage.Interface. A watch that begins with all objects has those that still cannot be read.
func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if ptr.Deref(opts.SendInitialEvents, false) && opts.Predicate.Empty() && s.of.absolute(strings.TrimSuffix(key, "/"))+"/" == s.of.prefix {
		s.of.objects.forget(s.of.GroupResource)
	}
	next, err := s.Interface.Watch(withReading(ctx, tolerant), key, opts)
	if err != nil {
		return nil, err
	}
	return newWatching(next, s), nil
}

// see remembers whether an object can be read.
func (s *store) see(obj runtime.Object, seen *tally) {
	found, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	seen.all++
	if unreadable.Is(found) {
		seen.unreadable++
		seen.last = s.named(found)
		s.of.objects.add(seen.last)
	} else if !s.of.objects.none() {
		s.of.objects.remove(s.of.GroupResource, s.of.key(found))
	}
}

func (s *store) named(placeholder metav1.Object) Object {
	return s.of.object(s.of.key(placeholder), placeholder.GetAnnotations()[unreadable.Annotation])
}

// tally counts the objects of a list.
type tally struct {
	all, unreadable int
	last            Object
}

// check refuses a list of which most cannot be read: not an object is wrong then, but the configuration, such as the
// keys for encryption. A server that is not ready because of that stops a rollout.
func (t *tally) check(of *resource) error {
	if t.unreadable <= few || 2*t.unreadable <= t.all {
		return nil
	}
	return storage.NewInternalError(fmt.Errorf("%d of %d %s in the store cannot be read, such as %s: %s. Give the server the encryption "+
		"configuration and the version that it had", t.unreadable, t.all, of.GroupResource, t.last.Key, t.last.Cause))
}
