// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Single is what became of an object that was imported by itself.
type Single struct {
	// Name is empty if the object has none.
	Name Name
	UID  types.UID
	// Hash identifies the object as it is stored; empty if it is not accepted.
	Hash    string
	Verdict Verdict
	// Err says why the object is not in the store as it was given.
	Err error
	// Rejected means that this version does not accept the object.
	Rejected bool
}

// Conflicts returns whether the store has something else under the name, which is right.
func (s *Single) Conflicts() bool {
	var other *otherError
	return errors.As(s.Err, &other)
}

// One checks an object, and stores it unless the import is a dry run.
func (i *Import) One(ctx context.Context, data []byte) Single {
	o, err := i.Kinds.decode(ctx, data, i.DropUnknown)
	if err != nil {
		name, _, _ := i.Kinds.name(data)
		return Single{Name: name, Err: err, Rejected: true}
	}
	single := Single{Name: o.Name, UID: o.uid}
	if single.Hash, err = i.Kinds.hash(o.data); err != nil {
		single.Err, single.Rejected = err, true
		return single
	}
	single.Verdict, single.Err = i.retry(func() (Verdict, error) { return i.one(ctx, o) })
	return single
}

// Remove deletes an object from the store that was imported, and that the source does not have any more, unless the import is a dry
// run. With Force it deletes one that another client has written, too. It is Unchanged if the store does not have it.
func (i *Import) Remove(ctx context.Context, n Name, uid types.UID) Single {
	single := Single{Name: n, UID: uid}
	single.Verdict, single.Err = i.retry(func() (Verdict, error) { return i.remove(ctx, n, uid) })
	return single
}

func (i *Import) remove(ctx context.Context, n Name, uid types.UID) (Verdict, error) {
	before, err := i.Store.read(ctx, n)
	if err != nil || before.revision == 0 {
		return Unchanged, err
	}
	stored, err := i.Kinds.uidOf(before.data)
	switch {
	case err != nil:
		return "", fmt.Errorf("decoding what is stored: %w", err)
	case stored != uid:
		return "", &otherError{fmt.Sprintf("the store has another object of this name: its UID must be %s, not %s", uid, stored)}
	case !i.Force && !before.untouched():
		return "", errWritten
	case i.DryRun:
		return Pruned, nil
	}
	return Pruned, i.Store.remove(ctx, n, before)
}

// hash identifies the content of a stored object, whatever the bytes are in which it is stored.
func (k *Kinds) hash(data []byte) (string, error) {
	obj, err := runtime.Decode(k.codec, data)
	if err != nil {
		return "", fmt.Errorf("decoding what is stored: %w", err)
	}
	return k.hashOf(obj)
}

func (k *Kinds) hashOf(obj runtime.Object) (string, error) {
	text, err := runtime.Encode(k.text, obj)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Stored is an object in the store.
type Stored struct {
	types.NamespacedName
	UID  types.UID
	Hash string
}

// Page returns at most so many objects of a resource, in the order of their names, beginning after a name; the empty
// name begins with the first one. It returns whether there are more.
func (i *Import) Page(ctx context.Context, resource schema.GroupResource, after types.NamespacedName, most int) ([]Stored, bool, error) {
	prefix := path.Join(i.Store.root(), resource.Group, resource.Resource) + "/"
	next := prefix
	if after.Name != "" {
		next = prefix + after.Namespace + "/" + after.Name + "\x00" // not cleaned, so that no name leads elsewhere
	}
	response, err := i.Store.KV.Get(ctx, next, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(int64(most)))
	if err != nil {
		return nil, false, fmt.Errorf("reading etcd: %w", err)
	}
	page := make([]Stored, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
		stored := Stored{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
		if err := i.describe(ctx, resource, string(kv.Key), kv.Value, &stored); err != nil {
			return nil, false, fmt.Errorf("%s %s: %w", resource, stored.NamespacedName, err)
		}
		page = append(page, stored)
	}
	return page, response.More, nil
}

// describe adds UID and hash of what is stored.
func (i *Import) describe(ctx context.Context, resource schema.GroupResource, key string, data []byte, stored *Stored) error {
	data, err := i.Store.decrypt(ctx, resource, key, data)
	if err != nil {
		return err
	}
	obj, err := runtime.Decode(i.Kinds.codec, data)
	if err != nil {
		return fmt.Errorf("decoding what is stored: %w", err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	stored.UID = accessor.GetUID()
	stored.Hash, err = i.Kinds.hashOf(obj)
	return err
}
