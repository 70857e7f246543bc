// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

const (
	clientPort = 2379
	peerPort   = 2380

	// snapshotEntries and followerEntries are how many writes a member of a cluster keeps in memory before a snapshot, and after one for
	// followers that are behind.
	snapshotEntries, followerEntries = 1000, 500
)

// Cluster describes the cluster to which a member belongs. Each member runs in a server of its own.
type Cluster struct {
	// Hosts are the DNS names or IP addresses of the members, by their ordinals.
	Hosts []string
	// Ordinal is the index of this member.
	Ordinal int
	// Name precedes the ordinal in the names of the members.
	Name string
	// Address is the IP address on which this member listens for the others, and for their servers.
	Address string
	// Certificates is a directory with ca.crt, tls.crt and tls.key. A member shows the certificate to the others, as a server and as a
	// client, and takes only connections with a certificate of that authority. The pair is read for each connection, and the authority at
	// the start.
	Certificates string
}

// CertificatesDir is where a server keeps the certificates for the members of its cluster.
func CertificatesDir(dataDir string) string { return filepath.Join(dataDir, "peers") }

// Transport says how to reach the members as a client.
func (c *Cluster) Transport() storagebackend.TransportConfig {
	config := storagebackend.TransportConfig{TrustedCAFile: c.file("ca.crt"), CertFile: c.file("tls.crt"), KeyFile: c.file("tls.key")}
	for ordinal := range c.Hosts {
		config.ServerList = append(config.ServerList, c.url(ordinal, clientPort))
	}
	return config
}

// Client is the address of a member for clients, as host and port.
func (c *Cluster) Client(ordinal int) string { return secure(c.Hosts[ordinal], clientPort).Host }

func (c *Cluster) file(name string) string { return filepath.Join(c.Certificates, name) }

func (c *Cluster) name(ordinal int) string { return c.Name + strconv.Itoa(ordinal) }

func (c *Cluster) url(ordinal, port int) string {
	address := secure(c.Hosts[ordinal], port)
	return address.String()
}

// others are the addresses of the other members for clients.
func (c *Cluster) others() []string {
	return slices.Delete(c.Transport().ServerList, c.Ordinal, c.Ordinal+1)
}

// configure makes the settings of a single member those of a member of the cluster. Names of clients are not compared with their
// addresses: DNS may be behind for a pod that has just started, and whoever has a certificate of the authority is a member.
func (c *Cluster) configure(cfg *embed.Config) {
	cfg.Name = c.name(c.Ordinal)
	cfg.ListenPeerUrls = []url.URL{secure(c.Address, peerPort)}
	cfg.AdvertisePeerUrls = []url.URL{secure(c.Hosts[c.Ordinal], peerPort)}
	cfg.InitialCluster = cfg.Name + "=" + c.url(c.Ordinal, peerPort)
	cfg.ListenClientUrls = append(cfg.ListenClientUrls, secure(c.Address, clientPort))
	cfg.AdvertiseClientUrls = []url.URL{secure(c.Hosts[c.Ordinal], clientPort)}
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = snapshotEntries, followerEntries
	cfg.PeerTLSInfo = transport.TLSInfo{
		TrustedCAFile: c.file("ca.crt"), CertFile: c.file("tls.crt"), KeyFile: c.file("tls.key"), ClientCertAuth: true, SkipClientSANVerify: true,
	}
	cfg.ClientTLSInfo = cfg.PeerTLSInfo
}

// initial returns the list of all members, in the format of etcd's flag --initial-cluster, for a member that joins the cluster.
func (c *Cluster) initial(members []*etcdserverpb.Member) string {
	var all []string
	for _, member := range members {
		name := c.nameOf(types.ID(member.ID), member.PeerURLs)
		for _, address := range member.PeerURLs {
			all = append(all, name+"="+address)
		}
	}
	return strings.Join(all, ",")
}

// nameOf returns the name of the member with one of the addresses, or the ID if it is none of the hosts. etcd knows the name of a member
// only after that has started.
func (c *Cluster) nameOf(id types.ID, peerURLs []string) string {
	if ordinal := c.ordinalOf(peerURLs); ordinal >= 0 {
		return c.name(ordinal)
	}
	return id.String()
}

// ordinalOf returns the ordinal of the member with one of the addresses, or -1 if it is none of the hosts.
func (c *Cluster) ordinalOf(peerURLs []string) int {
	for ordinal := range c.Hosts {
		if slices.Contains(peerURLs, c.url(ordinal, peerPort)) {
			return ordinal
		}
	}
	return -1
}

func secure(host string, port int) url.URL {
	return url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port))}
}
