// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// Marks is the name of the marks of imports below the prefix of the server in etcd, beside the groups.
	Marks = "store-import"
	// namesPage is how many names are read at once.
	namesPage = 500
	// encrypted is how the stored form of an encrypted object begins.
	encrypted = "k8s:enc:"
)

// Store is where the server stores its objects.
type Store struct {
	// KV reads and writes etcd.
	KV clientv3.KV
	// Prefix is the prefix of the server.
	Prefix string
	// Transformers encrypt; nil if objects are not encrypted.
	Transformers encryptionconfig.StaticTransformers
}

// entry is what the store has under a name.
type entry struct {
	// data is empty if there is no object.
	data []byte
	mark *mark
	// revision is the revision of the object, and marked the revision of the mark; 0 if there is none.
	revision, marked int64
}

// mark is what was imported.
type mark struct {
	UID             types.UID `json:"uid"`
	ResourceVersion uint64    `json:"resourceVersion"`
}

// untouched returns whether an import wrote the object, and no other client has written it since.
func (e *entry) untouched() bool { return e.mark != nil && e.revision == e.marked }

func (s *Store) root() string { return path.Join("/", s.Prefix) }

// key is where the server has the object.
func (s *Store) key(n Name) string {
	return path.Join(s.root(), n.Group, n.Resource, n.Namespace, n.Name)
}

func (s *Store) markKey(n Name) string {
	return path.Join(s.root(), Marks, n.Group, n.Resource, n.Namespace, n.Name)
}

// Witness returns the key of the witness, which is nil if no server has served the store.
func (s *Store) Witness(ctx context.Context) (*witness.Found, error) {
	response, err := s.KV.Get(ctx, path.Join(s.root(), witness.KeyName))
	if err != nil {
		return nil, fmt.Errorf("reading etcd: %w", err)
	}
	if len(response.Kvs) == 0 {
		return nil, nil
	}
	key, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil {
		return nil, err
	}
	return &witness.Found{Key: key, ModRevision: response.Kvs[0].ModRevision, Revision: response.Header.Revision}, nil
}

// read returns what is stored under a name.
func (s *Store) read(ctx context.Context, n Name) (*entry, error) {
	key := s.key(n)
	response, err := s.KV.Txn(ctx).Then(clientv3.OpGet(key), clientv3.OpGet(s.markKey(n))).Commit()
	if err != nil {
		return nil, fmt.Errorf("reading etcd: %w", err)
	}
	e := &entry{}
	if found := response.Responses[0].GetResponseRange().Kvs; len(found) > 0 {
		e.revision = found[0].ModRevision
		if e.data, err = s.decrypt(ctx, n.GroupResource, key, found[0].Value); err != nil {
			return nil, err
		}
	}
	if found := response.Responses[1].GetResponseRange().Kvs; len(found) > 0 {
		e.mark, e.marked = &mark{}, found[0].ModRevision
		if err := json.Unmarshal(found[0].Value, e.mark); err != nil {
			return nil, fmt.Errorf("%s in etcd: %w: delete the key", found[0].Key, err)
		}
	}
	return e, nil
}

// errEncrypted: who reads an encrypted object without a configuration would also write one that is not encrypted.
var errEncrypted = errors.New("the stored objects are encrypted: set --encryption-provider-config to the file of the server")

func (s *Store) decrypt(ctx context.Context, resource schema.GroupResource, key string, data []byte) ([]byte, error) {
	if s.Transformers == nil {
		if bytes.HasPrefix(data, []byte(encrypted)) {
			return nil, errEncrypted
		}
		return data, nil
	}
	data, _, err := s.Transformers.TransformerForResource(resource).TransformFromStorage(ctx, data, value.DefaultContext(key))
	if err != nil {
		return nil, fmt.Errorf("decrypting what is stored: %w", err)
	}
	return data, nil
}

func (s *Store) encrypt(ctx context.Context, resource schema.GroupResource, key string, data []byte) ([]byte, error) {
	if s.Transformers == nil {
		return data, nil
	}
	data, err := s.Transformers.TransformerForResource(resource).TransformToStorage(ctx, data, value.DefaultContext(key))
	if err != nil {
		return nil, fmt.Errorf("encrypting it: %w", err)
	}
	return data, nil
}

// errRaced is returned when another client has written the object or the mark since it was read.
var errRaced = errors.New("others write it at the same time: run the command again")

// write stores an object with its mark in place of what was read.
func (s *Store) write(ctx context.Context, o *object, before *entry) error {
	key := s.key(o.Name)
	data, err := s.encrypt(ctx, o.GroupResource, key, o.data)
	if err != nil {
		return err
	}
	marked, err := json.Marshal(mark{UID: o.uid, ResourceVersion: o.version})
	if err != nil {
		return err
	}
	return s.commit(ctx, o.Name, before, clientv3.OpPut(key, string(data)), clientv3.OpPut(s.markKey(o.Name), string(marked)))
}

// remove deletes an object that was read, with its mark.
func (s *Store) remove(ctx context.Context, n Name, before *entry) error {
	return s.commit(ctx, n, before, clientv3.OpDelete(s.key(n)), clientv3.OpDelete(s.markKey(n)))
}

func (s *Store) commit(ctx context.Context, n Name, before *entry, operations ...clientv3.Op) error {
	response, err := s.KV.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.key(n)), "=", before.revision),
		clientv3.Compare(clientv3.ModRevision(s.markKey(n)), "=", before.marked),
	).Then(operations...).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("writing etcd: %w", err)
	case !response.Succeeded:
		return errRaced
	}
	return nil
}

// names calls a function for the name of each stored object of a resource.
func (s *Store) names(ctx context.Context, resource schema.GroupResource, fn func(Name) error) error {
	prefix := path.Join(s.root(), resource.Group, resource.Resource) + "/"
	next, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		response, err := s.KV.Get(ctx, next, clientv3.WithRange(end), clientv3.WithLimit(namesPage), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("reading etcd: %w", err)
		}
		for _, kv := range response.Kvs {
			namespace, name, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
			if err := fn(Name{resource, types.NamespacedName{Namespace: namespace, Name: name}}); err != nil {
				return err
			}
		}
		if !response.More || len(response.Kvs) == 0 {
			return nil
		}
		next = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}
