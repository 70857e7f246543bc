// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/startup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// openStore makes sure that the storage can be used, as far as no other server is needed for that: the files for an external etcd can be
// read, or this process has locked the directory of an embedded one. It returns the embedded etcd, if there is one.
func openStore(o *options.Options) (*etcd.Server, error) {
	s, external, cluster := o.Storage, o.Recommended.Etcd, o.Cluster()
	transport := &external.StorageConfig.Transport
	if len(transport.ServerList) > 0 {
		_, err := members.CheckedTLS(*transport)
		return nil, err
	}
	server, err := etcd.Open(etcd.Config{
		DataDir:            s.DataDir,
		QuotaBytes:         s.QuotaBytes,
		DefragmentInterval: s.DefragmentInterval,
		Cluster:            cluster,
	})
	if errors.Is(err, etcd.ErrInUse) {
		return nil, flagerror.Wrap("data-dir", err, "stop that process or use another directory")
	}
	if err != nil {
		return nil, flagerror.Wrap("data-dir", err, "use a directory that this process can read and write")
	}
	transport.ServerList = []string{server.Endpoint()}
	if cluster != nil {
		*transport = cluster.Transport()
	}
	return server, nil
}

// openExternal makes sure that a member answers. With several members, those that hang are avoided.
func openExternal(ctx context.Context, transport *storagebackend.TransportConfig, waits *startup.Server) error {
	err := members.Await(ctx, *transport, func(err error) { waits.Wait(ctx, "etcd at "+strings.Join(transport.ServerList, ","), err) })
	if err != nil && ctx.Err() != nil {
		return mainapi.ErrLeft
	}
	if err == nil {
		waits.Proceed(ctx)
	}
	if err != nil || len(transport.ServerList) == 1 {
		return err
	}
	all, err := members.New(context.WithoutCancel(ctx), *transport, options.EtcdPrefix)
	if err != nil {
		return flagerror.Wrap("etcd-servers", err, "give addresses as scheme://host:port")
	}
	lookAfter(ctx, all, transport)
	return nil
}

// lookAfter makes clients avoid members that hang until the process ends: requests are still answered for a while after it was asked to.
func lookAfter(ctx context.Context, all *members.Members, transport *storagebackend.TransportConfig) {
	transport.EgressLookup = all.Lookup
	go all.Run(context.WithoutCancel(ctx))
}
