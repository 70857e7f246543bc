// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Wrap puts the recorder in front of the store of a resource whose runs it records. The store is one with a watch cache. Dry runs do not
// reach it, because the library answers them above.
func (r *Recorder) Wrap(store storage.Interface, config *storagebackend.ConfigForResource) (storage.Interface, error) {
	resource := config.GroupResource
	if r.Describe[resource] == nil {
		return store, nil
	}
	r.Outbox.Encrypt(resource, config.Transformer)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stores[resource] = store
	return recorded{Interface: store, recorder: r, resource: resource}, nil
}

// recorded is a store whose runs are recorded.
type recorded struct {
	storage.Interface
	recorder *Recorder
	resource schema.GroupResource
}

// GuaranteedUpdate implements storage.Interface. An execution that another one replaces goes to the outbox first.
func (s recorded) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	deletes := false // whether the last attempt sets the deletion timestamp
	update := func(input runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The library may change the input, so it is looked at before.
		deleting := isDeleting(input)
		before := s.recorder.execution(ctx, s.resource, input)
		output, ttl, err := tryUpdate(input, res)
		if err != nil {
			return output, ttl, err
		}
		s.recorder.replacing(ctx, s.resource, key, before, output)
		deletes = !deleting && isDeleting(output)
		return output, ttl, nil
	}
	if err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, update, cached); err != nil {
		return err
	}
	if deletes {
		s.recorder.deletes(ctx, destination)
	}
	s.recorder.updated(ctx, s.resource, key, destination)
	return nil
}

// Delete implements storage.Interface. The validation is called with the object that is about to be removed, and again with a newer one if
// it was written in between.
func (s recorded) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	written := false
	record := func(ctx context.Context, object runtime.Object) error {
		if err := validate(ctx, object); err != nil {
			return err
		}
		if object != nil {
			written = s.recorder.removing(ctx, s.resource, key, object, written) || written
		}
		return nil
	}
	if err := s.Interface.Delete(ctx, key, out, preconditions, record, cached, opts); err != nil {
		return err
	}
	s.recorder.at(objectGone)
	if written {
		s.recorder.wake()
	}
	return nil
}

func isDeleting(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetDeletionTimestamp() != nil
}

// deletes remembers who deletes an object that finalizers keep. The garbage collector removes it later.
func (r *Recorder) deletes(ctx context.Context, object runtime.Object) {
	if accessor, err := meta.Accessor(object); err == nil {
		r.deleters.add(accessor.GetUID(), userOf(ctx))
	}
}

// deleter returns who deletes an object; empty if that is not known. The controller that removes the last finalizer did not delete the
// object.
func (r *Recorder) deleter(ctx context.Context, object runtime.Object) string {
	if !isDeleting(object) {
		return userOf(ctx)
	}
	name, _ := r.deleters.get(uidOf(object))
	return name
}

func uidOf(object runtime.Object) types.UID {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}

// maxUserBytes is how much of the name of a user is kept.
const maxUserBytes = 256

func userOf(ctx context.Context) string {
	info, ok := request.UserFrom(ctx)
	if !ok {
		return ""
	}
	return cut(info.GetName(), maxUserBytes)
}

// cut cuts a text between two characters.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	end := 0
	for i := range text {
		if i > size {
			break
		}
		end = i
	}
	return text[:end]
}
