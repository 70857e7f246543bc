// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
)

// objectsPage is how many objects are read at once: they are the largest that there are, in the worst case.
const objectsPage = 50

// Resource is where the objects of a resource are.
type Resource struct {
	// Prefix is below the prefix of the store.
	Prefix string
	// Transformer decrypts; it is nil if the objects are not encrypted.
	Transformer value.Transformer
}

// Objects returns the UIDs of all objects of the resources that stay when the server serves. An object whose owners are
// all of our groups and not in the store does not stay, and neither does what it owns: its children in the main cluster
// have to be kept as if it were not there. It reads only what is stored, and does not need the server to serve.
func (g *Guard) Objects(ctx context.Context, resources []Resource, groups sets.Set[string]) (sets.Set[types.UID], error) {
	found, owned := sets.New[types.UID](), map[types.UID][]types.UID{}
	for _, resource := range resources {
		err := g.store.eachObject(ctx, resource, func(object *metav1.ObjectMeta) {
			found.Insert(object.UID)
			if owners := ownersOf(object, groups); len(owners) > 0 {
				owned[object.UID] = owners
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for removed := true; removed; {
		removed = false
		for uid, owners := range owned {
			if !found.HasAny(owners...) {
				found.Delete(uid)
				delete(owned, uid)
				removed = true
			}
		}
	}
	return found, nil
}

// ownersOf returns the owners of an object if all of them are of our groups.
func ownersOf(object *metav1.ObjectMeta, groups sets.Set[string]) []types.UID {
	var owners []types.UID
	for _, reference := range object.OwnerReferences {
		if version, err := schema.ParseGroupVersion(reference.APIVersion); err != nil || !groups.Has(version.Group) {
			return nil
		}
		owners = append(owners, reference.UID)
	}
	return owners
}

// Has returns whether there is a key below a path below the prefix of the store.
func (g *Guard) Has(ctx context.Context, below string) (bool, error) {
	prefix := path.Join(g.store.prefix, below) + "/"
	response, err := g.store.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("counting %s in etcd: %w", prefix, err)
	}
	return response.Count > 0, nil
}

func (s *store) eachObject(ctx context.Context, resource Resource, fn func(*metav1.ObjectMeta)) error {
	prefix := path.Join(s.prefix, resource.Prefix) + "/"
	next, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		response, err := s.client.Get(ctx, next, clientv3.WithRange(end), clientv3.WithLimit(objectsPage))
		if err != nil {
			return fmt.Errorf("reading %s from etcd: %w", prefix, err)
		}
		for _, kv := range response.Kvs {
			object, err := metadataOf(ctx, resource.Transformer, string(kv.Key), kv.Value)
			if err != nil {
				return fmt.Errorf("%s in etcd: %w", kv.Key, err)
			}
			fn(object)
		}
		if !response.More || len(response.Kvs) == 0 {
			return nil
		}
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}

// metadataOf reads the metadata of a stored object alone, which all kinds have in the same field. The UID of an object
// that cannot be read is not known: the result stands for the owner of its name, so that its children do not count as
// lost. It is an error if a service that decrypts does not answer.
func metadataOf(ctx context.Context, transformer value.Transformer, key string, data []byte) (*metav1.ObjectMeta, error) {
	var err error
	if transformer != nil {
		data, _, err = transformer.TransformFromStorage(ctx, data, value.DefaultContext(key))
	}
	if unreadable.Passes(err) {
		return nil, fmt.Errorf("decrypting: %w", err)
	}
	if err == nil {
		if found := unreadable.MetadataOf(data); found != nil {
			return found, nil
		}
	}
	klog.FromContext(ctx).Error(err, "The UID of an object in the store cannot be read; its children count as owned", "key", key)
	return &metav1.ObjectMeta{UID: owners.Unread(path.Base(path.Dir(key)), path.Base(key))}, nil
}
