// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"fmt"
	"net"
	"path"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	dialTimeout      = 20 * time.Second
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// store is the half of the witness in etcd.
type store struct {
	client *clientv3.Client
	prefix string
	// key is the name of the key of the witness. proposed is the name of the key with the UUID that is proposed while the store is refused.
	key, proposed string
}

// openStore connects as the storage of the server does. The connection is made when it is needed.
func openStore(config storagebackend.TransportConfig, prefix string) (*store, error) {
	settings := clientv3.Config{
		Endpoints: config.ServerList, DialTimeout: dialTimeout, DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout,
		Logger: zap.NewNop(),
	}
	var err error
	if settings.TLS, err = members.TLS(config); err != nil {
		return nil, err
	}
	if config.EgressLookup != nil {
		dial, err := config.EgressLookup(egressselector.Etcd.AsNetworkContext())
		if err != nil {
			return nil, fmt.Errorf("connecting to etcd: %w", err)
		}
		settings.DialOptions = append(settings.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	prefix = path.Join("/", prefix)
	return &store{client: client, prefix: prefix, key: path.Join(prefix, witness.KeyName),
		proposed: path.Join(prefix, witness.KeyName+"-proposal")}, nil
}

// read returns the key, which is nil if there is none. The read is linearizable.
func (s *store) read(ctx context.Context) (*witness.Found, error) {
	response, err := s.client.Get(ctx, s.key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the witness from etcd: %w", err)
	}
	if len(response.Kvs) == 0 {
		return nil, nil
	}
	key, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil {
		return nil, fmt.Errorf("%s in etcd: %w", s.key, err)
	}
	return &witness.Found{Key: key, ModRevision: response.Kvs[0].ModRevision, Revision: response.Header.Revision}, nil
}

// write stores the key if it has the revision, which is 0 if there must be none. It returns the new revision, or 0 if
// the key has another one.
func (s *store) write(ctx context.Context, key *witness.Key, revision int64) (int64, error) {
	response, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.key), "=", revision)).
		Then(clientv3.OpPut(s.key, string(key.Encode())), clientv3.OpDelete(s.proposed)).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("writing the key of the witness to etcd: %w", err)
	case !response.Succeeded:
		return 0, nil
	}
	return response.Header.Revision, nil
}

// propose keeps a UUID in the store unless there is one already, and returns the one that is kept.
func (s *store) propose(ctx context.Context, id string) (string, error) {
	response, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.proposed), "=", 0)).
		Then(clientv3.OpPut(s.proposed, id)).Commit()
	switch {
	case err != nil:
		return "", fmt.Errorf("writing %s to etcd: %w", s.proposed, err)
	case response.Succeeded:
		return id, nil
	}
	kept, err := s.proposal(ctx)
	if err == nil && uuid.Validate(kept) != nil {
		err = fmt.Errorf("%s in etcd must be a UUID", s.proposed)
	}
	return kept, err
}

// proposal returns the UUID that is kept; it is empty if there is none.
func (s *store) proposal(ctx context.Context) (string, error) {
	response, err := s.client.Get(ctx, s.proposed)
	if err != nil {
		return "", fmt.Errorf("reading %s from etcd: %w", s.proposed, err)
	}
	if len(response.Kvs) == 0 {
		return "", nil
	}
	return string(response.Kvs[0].Value), nil
}
