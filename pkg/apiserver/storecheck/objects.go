// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/unreadable"
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

// Objects returns the UIDs of all objects of the resources. It reads only what is stored, and does not need the server to serve.
func (g *Guard) Objects(ctx context.Context, resources []Resource) (sets.Set[types.UID], error) {
	found := sets.New[types.UID]()
	for _, resource := range resources {
		if err := g.store.eachObject(ctx, resource, func(uid types.UID) { found.Insert(uid) }); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *store) eachObject(ctx context.Context, resource Resource, visit func(types.UID)) error {
	prefix := path.Join(s.prefix, resource.Prefix) + "/"
	next, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		response, err := s.client.Get(ctx, next, clientv3.WithRange(end), clientv3.WithLimit(objectsPage))
		if err != nil {
			return fmt.Errorf("reading %s from etcd: %w", prefix, err)
		}
		for _, kv := range response.Kvs {
			visit(uidOf(ctx, resource.Transformer, string(kv.Key), kv.Value))
		}
		if !response.More || len(response.Kvs) == 0 {
			return nil
		}
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}

// uidOf reads the metadata of a stored object alone, which all kinds have in the same field. The UID of an object that cannot be read is not known: the result stands
// for the owner of its name, so that its children do not count as lost.
func uidOf(ctx context.Context, transformer value.Transformer, key string, data []byte) types.UID {
	var err error
	if transformer != nil {
		data, _, err = transformer.TransformFromStorage(ctx, data, value.DefaultContext(key))
	}
	if err == nil {
		if found := unreadable.MetadataOf(data); found != nil {
			return found.UID
		}
	}
	klog.FromContext(ctx).Error(err, "The UID of an object in the store cannot be read; its children count as owned", "key", key)
	return owners.Unread(path.Base(path.Dir(key)), path.Base(key))
}
