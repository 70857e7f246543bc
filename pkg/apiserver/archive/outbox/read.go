// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// MaxLoad is how many entries are loaded at once. etcd takes at most 128 operations in one transaction.
	MaxLoad = 100
	// keysPage is how many keys are read at once.
	keysPage = 1000
)

// Ref is an entry by its key in etcd, and the revision at which it was written.
type Ref struct {
	Key      string
	Revision int64
}

// Stored is an entry as it is in etcd.
type Stored struct {
	Ref
	value []byte
}

// Bytes is the size of the entry.
func (s Stored) Bytes() int64 { return sizeOf(s.Key, s.value) }

// Index returns all entries, those that were written first come first. It reads their keys alone.
func (o *Outbox) Index(ctx context.Context) ([]Ref, error) {
	var refs []Ref
	err := o.pages(ctx, keysPage, func(page *clientv3.GetResponse) {
		for _, kv := range page.Kvs {
			refs = append(refs, Ref{Key: string(kv.Key), Revision: kv.ModRevision})
		}
	}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})
	return refs, nil
}

// Load reads at most MaxLoad entries. It leaves out entries that are gone. An entry that was written again comes as it is now.
func (o *Outbox) Load(ctx context.Context, refs []Ref) ([]Stored, error) {
	refs = refs[:min(len(refs), MaxLoad)]
	gets := make([]clientv3.Op, 0, len(refs))
	for _, ref := range refs {
		gets = append(gets, clientv3.OpGet(ref.Key))
	}
	response, err := o.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, fmt.Errorf("reading %s from etcd: %w", o.prefix, err)
	}
	var found []Stored
	for _, one := range response.Responses {
		for _, kv := range one.GetResponseRange().Kvs {
			found = append(found, Stored{Ref{string(kv.Key), kv.ModRevision}, kv.Value})
		}
	}
	return found, nil
}

// Decode reads an entry. An error means that this version of the server cannot read it.
func (o *Outbox) Decode(ctx context.Context, stored Stored) (*Entry, error) {
	entry, err := decode(ctx, stored.Key, stored.value, o.transformer)
	if err != nil {
		return nil, fmt.Errorf("%s in etcd: %w", stored.Key, err)
	}
	return entry, nil
}

// pages calls a function with all entries, page by page.
func (o *Outbox) pages(ctx context.Context, size int64, fn func(*clientv3.GetResponse), options ...clientv3.OpOption) error {
	next := o.prefix
	options = append(options, clientv3.WithRange(clientv3.GetPrefixRangeEnd(o.prefix)), clientv3.WithLimit(size))
	for {
		page, err := o.client.Get(ctx, next, options...)
		if err != nil {
			return fmt.Errorf("reading %s from etcd: %w", o.prefix, err)
		}
		fn(page)
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		next = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
