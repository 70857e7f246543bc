// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"net"
	"net/url"
	"path/filepath"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
)

// StoreClient says how a command reaches the store of a server, with the flags of the server.
type StoreClient struct {
	// DataDir is the directory of an embedded etcd, whose server runs.
	DataDir string

	external *genericoptions.EtcdOptions
}

// NewStoreClient returns the defaults.
func NewStoreClient() *StoreClient {
	return &StoreClient{external: genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(etcdPrefix, nil))}
}

// AddFlags adds the flags for both kinds of storage.
func (c *StoreClient) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.DataDir, "data-dir", c.DataDir, "Directory of the embedded etcd of a server that runs on this machine or in this pod.")
	pick(fs, c.external.AddFlags, "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile")
	fs.Lookup("etcd-servers").Usage = "Addresses of an external etcd cluster (scheme://host:port, comma separated)."
	c.AddPrefixFlag(fs)
}

// AddPrefixFlag adds the flag that distinguishes servers in one etcd.
func (c *StoreClient) AddPrefixFlag(fs *pflag.FlagSet) {
	pick(fs, c.external.AddFlags, "etcd-prefix")
}

// Set returns whether a flag says where the store is.
func (c *StoreClient) Set() bool {
	return c.DataDir != "" || len(c.external.StorageConfig.Transport.ServerList) > 0
}

// Prefix is what the names of all keys of the server begin with.
func (c *StoreClient) Prefix() string { return c.external.StorageConfig.Prefix }

// Source makes sure that the store answers and returns it.
func (c *StoreClient) Source(ctx context.Context) (backup.Source, error) {
	transport := c.external.StorageConfig.Transport
	source := backup.Source{Prefix: c.Prefix()}
	switch {
	case (c.DataDir == "") == (len(transport.ServerList) == 0):
		return source, flagError("data-dir", "either --data-dir or --etcd-servers must be set, as for the server")
	case c.DataDir != "":
		return c.embedded(ctx, source)
	case (transport.CertFile == "") != (transport.KeyFile == ""):
		return source, flagError("etcd-certfile", "must be set together with --etcd-keyfile")
	}
	if err := checkEtcd(ctx, transport); err != nil {
		return source, err
	}
	source.Client = clientv3.Config{Endpoints: transport.ServerList, DialTimeout: etcdTimeout}
	for _, server := range transport.ServerList {
		if u, _ := url.Parse(server); u.Scheme != "https" {
			continue
		}
		var err error
		if source.Client.TLS, err = etcdTLS(transport); err != nil {
			return source, err
		}
	}
	return source, nil
}

func (c *StoreClient) embedded(ctx context.Context, source backup.Source) (backup.Source, error) {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return source, wrapFlagError("data-dir", err, "give the directory of the server")
	}
	endpoint := etcd.Endpoint(dir)
	u, err := url.Parse(endpoint)
	if err != nil {
		return source, wrapFlagError("data-dir", err, "give the directory of the server")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", u.Path)
	if err != nil {
		return source, flagError("data-dir", "no server runs in %s: %w: start it, or copy the directory as long as it does not run", dir, err)
	}
	source.DataDir, source.Client = dir, clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdTimeout}
	return source, conn.Close()
}
