// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// resource is where the objects of a resource are, and how they are read.
type resource struct {
	schema.GroupResource
	// storePrefix begins all keys of the server, and prefix those of the objects of the resource.
	storePrefix, prefix string
	newFunc             func() runtime.Object
	objects             *Objects
}

func newResource(of schema.GroupResource, storePrefix, resourcePrefix string, newFunc func() runtime.Object, objects *Objects) *resource {
	root := path.Join("/", storePrefix)
	return &resource{
		GroupResource: of, storePrefix: strings.TrimSuffix(root, "/") + "/", prefix: path.Join(root, resourcePrefix) + "/", newFunc: newFunc,
		objects: objects,
	}
}

// name returns the name in the key of an object.
func (r *resource) name(key string) types.NamespacedName {
	namespace, name, namespaced := strings.Cut(strings.TrimPrefix(key, r.prefix), "/")
	if !namespaced {
		return types.NamespacedName{Name: namespace}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// key returns the key of an object in etcd.
func (r *resource) key(of metav1.Object) string {
	return r.prefix + strings.TrimPrefix(of.GetNamespace()+"/"+of.GetName(), "/")
}

// absolute returns the key in etcd of a key that the storage is asked for.
func (r *resource) absolute(key string) string { return r.storePrefix + strings.TrimPrefix(key, "/") }

// object returns an object as it is named to administrators.
func (r *resource) object(key string, cause string) Object {
	name := r.name(key)
	return Object{Resource: r.GroupResource, Namespace: name.Namespace, Name: name.Name, Key: key, Cause: cause}
}

// named returns an error if the metadata of an object does not belong to its key: the object would be served under a
// name by which it is not found.
func (r *resource) named(key string, found metav1.Object) error {
	want := r.name(key)
	if got := (types.NamespacedName{Namespace: found.GetNamespace(), Name: found.GetName()}); got != want {
		return fmt.Errorf("the object of this key must be named %s, but its metadata says %s", want, strconv.Quote(got.String()))
	}
	return nil
}
