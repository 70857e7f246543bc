// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakestore makes the fake clients of client-go store objects as an API server does. On their own, they replace
// the whole object when its status is written, and accept every write: the test and the controller overwrite each
// other's changes, depending on which goroutine runs first.
package fakestore

import (
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// firstVersion is greater than the resource versions that tests give to their objects.
const firstVersion = 1000

// Install makes the client whose requests fake receives, and whose objects are in the tracker, do what an API server does:
//
//   - An object gets a UID when it is created, unless the test has chosen one, and a new resource version with each write. Its deletion is a
//     write, too: the last version that a watch shows is a new one.
//   - An update with an outdated resource version, and a write with another UID, is a conflict. So is a deletion whose
//     preconditions do not hold.
//   - A write of the status changes nothing else, and other writes do not change the status.
//
// Objects that a test adds to the tracker stay as they are. Reactors that are prepended, before or later, come first. One that
// carries out a write itself, for example to lose the answer, calls the function that Install returns.
func Install(fake *clientgotesting.Fake, tracker clientgotesting.ObjectTracker) clientgotesting.ReactionFunc {
	version := firstVersion // fake handles one request at a time
	react := func(action clientgotesting.Action) (bool, runtime.Object, error) {
		writes := slices.Contains([]string{"create", "update", "patch", "delete"}, action.GetVerb())
		if part := action.GetSubresource(); !writes || part != "" && part != "status" {
			return false, nil, nil
		}
		s := &store{ObjectTracker: tracker, status: action.GetSubresource() == "status", version: &version}
		return clientgotesting.ObjectReaction(s)(action)
	}
	fake.Lock()
	defer fake.Unlock()
	last := len(fake.ReactionChain) - 1 // the reactor that the client begins with
	fake.ReactionChain = slices.Insert(fake.ReactionChain, last, clientgotesting.Reactor(&clientgotesting.SimpleReactor{
		Verb: "*", Resource: "*", Reaction: react,
	}))
	return react
}

// store is a tracker that carries out one request.
type store struct {
	clientgotesting.ObjectTracker
	// status is true if the request is about the status.
	status bool
	// version is the resource version of the last write.
	version *int
}

// Create implements clientgotesting.ObjectTracker.
func (s *store) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprint("uid-", object.GetName(), "-", *s.version)))
	}
	s.count(object)
	return s.ObjectTracker.Create(gvr, obj, ns, opts...)
}

// Update implements clientgotesting.ObjectTracker.
func (s *store) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions) error {
	next, err := s.next(gvr, obj, ns)
	if err != nil {
		return err
	}
	return s.ObjectTracker.Update(gvr, next, ns, opts...)
}

// Patch implements clientgotesting.ObjectTracker. The object is the patched one.
func (s *store) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	next, err := s.next(gvr, obj, ns)
	if err != nil {
		return err
	}
	if err := s.ObjectTracker.Patch(gvr, next, ns, opts...); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(next).Elem()) // the answer
	return nil
}

// Delete implements clientgotesting.ObjectTracker. The tracker shows the version that is stored, so that this is changed first.
func (s *store) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	stored, err := s.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	object, err := meta.Accessor(stored)
	if err != nil {
		return err
	}
	for _, options := range opts {
		wanted := options.Preconditions
		if wanted == nil {
			continue
		}
		uid, version := object.GetUID(), object.GetResourceVersion()
		if ptr.Deref(wanted.UID, uid) != uid || ptr.Deref(wanted.ResourceVersion, version) != version {
			return conflict(gvr, name, "the preconditions do not hold")
		}
	}
	s.count(object)
	if err := s.ObjectTracker.Update(gvr, stored, ns); err != nil {
		return err
	}
	return s.ObjectTracker.Delete(gvr, ns, name, opts...)
}

// next returns the object that is stored when obj is written.
func (s *store) next(gvr schema.GroupVersionResource, obj runtime.Object, ns string) (runtime.Object, error) {
	written, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	current, err := s.Get(gvr, ns, written.GetName())
	if err != nil {
		return nil, err
	}
	stored, err := meta.Accessor(current)
	if err != nil {
		return nil, err
	}
	if v := written.GetResourceVersion(); v != "" && v != stored.GetResourceVersion() {
		return nil, conflict(gvr, written.GetName(), fmt.Sprintf("its version is %s, and not %s", stored.GetResourceVersion(), v))
	}
	if uid := written.GetUID(); uid != "" && uid != stored.GetUID() {
		return nil, conflict(gvr, written.GetName(), fmt.Sprintf("its UID is %s, and not %s", stored.GetUID(), uid))
	}
	next, other := obj.DeepCopyObject(), current
	if s.status {
		next, other = current, obj.DeepCopyObject()
	}
	copyStatus(next, other)
	object, err := meta.Accessor(next)
	if err != nil {
		return nil, err
	}
	object.SetUID(stored.GetUID())
	s.count(object)
	return next, nil
}

// copyStatus gives an object the status of another one.
func copyStatus(to, from runtime.Object) {
	if from, ok := from.(*unstructured.Unstructured); ok {
		to := to.(*unstructured.Unstructured)
		if status, ok := from.Object["status"]; ok {
			to.Object["status"] = status
		} else {
			delete(to.Object, "status")
		}
		return
	}
	if status := reflect.ValueOf(to).Elem().FieldByName("Status"); status.IsValid() {
		status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}

func (s *store) count(object metav1.Object) {
	*s.version++
	object.SetResourceVersion(fmt.Sprint(*s.version))
}

func conflict(gvr schema.GroupVersionResource, name, why string) error {
	return apierrors.NewConflict(gvr.GroupResource(), name, fmt.Errorf("the object has changed: %s", why))
}
