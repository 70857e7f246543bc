// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"context"
	"net"
	"net/url"
	"path/filepath"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// storeClient says how a command reaches the store of a server, with the flags of the server.
type storeClient struct {
	// DataDir is the directory of an embedded etcd, whose server runs.
	DataDir string

	external *genericoptions.EtcdOptions
}

// newStoreClient returns the defaults.
func newStoreClient() *storeClient {
	return &storeClient{external: genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(options.EtcdPrefix, nil))}
}

// AddFlags adds the flags for both kinds of storage.
func (c *storeClient) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.DataDir, "data-dir", c.DataDir, "Directory of the embedded etcd of a server that runs on this machine or in this pod.")
	options.Pick(fs, c.external.AddFlags, "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile")
	fs.Lookup("etcd-servers").Usage = "Addresses of an external etcd cluster (scheme://host:port, comma separated)."
	c.AddPrefixFlag(fs)
}

// AddPrefixFlag adds the flag that distinguishes servers in one etcd.
func (c *storeClient) AddPrefixFlag(fs *pflag.FlagSet) {
	options.Pick(fs, c.external.AddFlags, "etcd-prefix")
}

// Set returns whether a flag says where the store is.
func (c *storeClient) Set() bool {
	return c.DataDir != "" || len(c.external.StorageConfig.Transport.ServerList) > 0
}

// Prefix is what the names of all keys of the server begin with.
func (c *storeClient) Prefix() string { return c.external.StorageConfig.Prefix }

// Source makes sure that the store answers and returns it.
func (c *storeClient) Source(ctx context.Context) (backup.Source, error) {
	transport := c.external.StorageConfig.Transport
	source := backup.Source{Prefix: c.Prefix()}
	switch {
	case (c.DataDir == "") == (len(transport.ServerList) == 0):
		return source, flagerror.New("data-dir", "either --data-dir or --etcd-servers must be set, as for the server")
	case c.DataDir != "":
		return c.embedded(ctx, source)
	case (transport.CertFile == "") != (transport.KeyFile == ""):
		return source, flagerror.New("etcd-certfile", "must be set together with --etcd-keyfile")
	}
	if err := members.Check(ctx, transport); err != nil {
		return source, err
	}
	source.Client = clientv3.Config{Endpoints: transport.ServerList, DialTimeout: members.AnswerTimeout}
	for _, server := range transport.ServerList {
		if u, _ := url.Parse(server); u.Scheme != "https" {
			continue
		}
		var err error
		if source.Client.TLS, err = members.CheckedTLS(transport); err != nil {
			return source, err
		}
	}
	return source, nil
}

func (c *storeClient) embedded(ctx context.Context, source backup.Source) (backup.Source, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return source, flagerror.Wrap("data-dir", err, "give the directory of the server")
	}
	endpoint := etcd.Endpoint(dir)
	u, err := url.Parse(endpoint)
	if err != nil {
		return source, flagerror.Wrap("data-dir", err, "give the directory of the server")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", u.Path)
	if err != nil {
		return source, flagerror.New("data-dir", "no server runs in %s: %w: start it, or copy the directory as long as it does not run", dir, err)
	}
	source.DataDir, source.Client = dir, clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: members.AnswerTimeout}
	return source, conn.Close()
}
