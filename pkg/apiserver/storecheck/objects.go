// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage/value"
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
			uid, err := uidOf(ctx, resource.Transformer, string(kv.Key), kv.Value)
			if err != nil {
				return fmt.Errorf("%s in etcd: %w", kv.Key, err)
			}
			visit(uid)
		}
		if !response.More || len(response.Kvs) == 0 {
			return nil
		}
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}

// protobufPrefix begins each object that is stored as protobuf.
var protobufPrefix = []byte("k8s\x00")

// uidOf reads the metadata of a stored object alone. All kinds have it in the same field.
func uidOf(ctx context.Context, transformer value.Transformer, key string, data []byte) (types.UID, error) {
	if transformer != nil {
		var err error
		if data, _, err = transformer.TransformFromStorage(ctx, data, value.DefaultContext(key)); err != nil {
			return "", fmt.Errorf("decrypting: %w", err)
		}
	}
	var object metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(data, protobufPrefix); ok {
		var envelope runtime.Unknown
		if err := envelope.Unmarshal(encoded); err != nil {
			return "", fmt.Errorf("decoding: %w", err)
		}
		if err := object.Unmarshal(envelope.Raw); err != nil {
			return "", fmt.Errorf("decoding metadata: %w", err)
		}
	} else if err := json.Unmarshal(data, &object); err != nil {
		return "", fmt.Errorf("decoding metadata: %w", err)
	}
	if object.UID == "" {
		return "", errors.New("it has no uid")
	}
	return object.UID, nil
}
