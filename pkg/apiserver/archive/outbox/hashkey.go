// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// hashKeyName is the name of the key of hashes below the prefix of the server in etcd.
	hashKeyName = "archive-hash-key"
	// hashKeySize is its size in bytes.
	hashKeySize = 32
)

// HashKey returns the key with which all servers hash what must not be kept in clear, so that equal values have equal hashes. The first
// server that asks creates it. It never leaves etcd and the servers, so that hashes of short values cannot be computed by others.
func (o *Outbox) HashKey(ctx context.Context) ([]byte, error) {
	name := path.Join("/", o.Prefix, hashKeyName)
	proposed := make([]byte, hashKeySize)
	_, _ = rand.Read(proposed) // never fails
	response, err := o.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
		Then(clientv3.OpPut(name, string(proposed))).Else(clientv3.OpGet(name)).Commit()
	if err != nil {
		return nil, fmt.Errorf("reading %s from etcd: %w", name, err)
	}
	if response.Succeeded {
		return proposed, nil
	}
	kvs := response.Responses[0].GetResponseRange().GetKvs()
	if len(kvs) == 0 || len(kvs[0].Value) < hashKeySize {
		return nil, fmt.Errorf("reading %s from etcd: it must have %d bytes: remove it, and the next server makes another one", name, hashKeySize)
	}
	return kvs[0].Value, nil
}
