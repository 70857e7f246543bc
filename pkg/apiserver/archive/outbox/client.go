// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
)

const (
	dialTimeout      = 20 * time.Second
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// connect connects as the storage of the server does. The connection is made when it is needed.
func connect(config storagebackend.TransportConfig) (*clientv3.Client, error) {
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
		if dial != nil {
			settings.DialOptions = append(settings.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dial(ctx, "tcp", address)
			}))
		}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, nil
}
