// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keysPage is how many values are read at once.
const keysPage = 50

// Stored is what a key has.
type Stored struct {
	Key      string
	Value    []byte
	Revision int64
}

// Key reads what a key has; nil if there is none.
func (s Source) Key(ctx context.Context, key string) (*Stored, error) {
	var found *Stored
	err := s.page(ctx, key, "", func(stored Stored) error {
		found = &stored
		return nil
	})
	return found, err
}

// EachKey calls a function for what each key with the prefix has.
func (s Source) EachKey(ctx context.Context, prefix string, fn func(Stored) error) error {
	return s.page(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), fn)
}

// Remove deletes a key if it still has what was read. It returns whether it had.
func (s Source) Remove(ctx context.Context, stored *Stored) (bool, error) {
	client, err := s.connect(ctx, s.Client.Endpoints...)
	if err != nil {
		return false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(stored.Key), "=", stored.Revision)).Then(
		clientv3.OpDelete(stored.Key)).Commit()
	if err != nil {
		return false, fmt.Errorf("removing %s from etcd: %w", stored.Key, err)
	}
	return response.Succeeded, nil
}

func (s Source) page(ctx context.Context, from, end string, fn func(Stored) error) error {
	client, err := s.connect(ctx, s.Client.Endpoints...)
	if err != nil {
		return err
	}
	defer client.Close()
	options := []clientv3.OpOption{clientv3.WithLimit(keysPage)}
	if end != "" {
		options = append(options, clientv3.WithRange(end))
	}
	for {
		response, err := getPage(ctx, client, from, options)
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			if err := fn(Stored{Key: string(kv.Key), Value: kv.Value, Revision: kv.ModRevision}); err != nil {
				return err
			}
			from = string(kv.Key) + "\x00"
		}
		if !response.More {
			return nil
		}
	}
}

func getPage(ctx context.Context, client *clientv3.Client, from string, options []clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := client.Get(ctx, from, options...)
	if err != nil {
		return nil, fmt.Errorf("reading %s from etcd: %w", from, err)
	}
	return response, nil
}
