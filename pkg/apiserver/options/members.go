// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

const (
	membersFlag = "embedded-etcd-members"
	// membersCount is how many members a cluster has.
	membersCount = 3
	// peersSuffix follows the name of the managed Secret in the name of the Secret with the certificates of the members.
	peersSuffix = "-peers"
)

// Cluster describes the cluster of the embedded etcd; nil for a single member. The options must be valid.
func (o *Options) Cluster() *etcd.Cluster {
	s := o.Storage
	if len(s.Members) == 0 {
		return nil
	}
	digits, _ := podOrdinal(s.PodName)
	ordinal, _ := strconv.Atoi(digits)
	return &etcd.Cluster{
		Hosts: s.Members, Ordinal: ordinal, Name: strings.TrimSuffix(s.PodName, digits),
		Address: o.Recommended.SecureServing.BindAddress.String(), Certificates: etcd.CertificatesDir(s.DataDir),
	}
}

// Peers are the options of the certificates of the members.
func (o *ManagedCertOptions) Peers() ManagedCertOptions {
	return ManagedCertOptions{Secret: o.Secret + peersSuffix, Policy: o.Policy}
}

// validateMembers checks what a cluster of embedded members needs beside the options of storage.
func (o *Options) validateMembers() error {
	if len(o.Storage.Members) > 0 && o.ManagedCert.Secret == "" {
		return flagerror.New(membersFlag, "needs --%s, whose Secret has the same name as the one for the members without %q: set it", ManagedFlag,
			peersSuffix)
	}
	return nil
}

// validateMembers checks the list of members, and that this process is one of them.
func (s *StorageOptions) validateMembers(embedded bool) error {
	switch ordinal, ok := podOrdinal(s.PodName); {
	case len(s.Members) == 0:
		return nil
	case !embedded:
		return flagerror.New(membersFlag, "must not be set together with --etcd-servers: remove one of them")
	case len(s.Members) != membersCount || sets.New(s.Members...).Len() != membersCount:
		return flagerror.New(membersFlag, "must name %d different hosts, not %q", membersCount, strings.Join(s.Members, ","))
	case slices.ContainsFunc(s.Members, func(host string) bool { return !isHost(host) }):
		return flagerror.New(membersFlag, "must have DNS names or IP addresses without a port, not %q", strings.Join(s.Members, ","))
	case !ok || !slices.Contains([]string{"0", "1", "2"}, ordinal):
		return flagerror.New("pod-name", "must end in the ordinal of this server in --%s, such as \"-0\", not be %q", membersFlag, s.PodName)
	case !s.Witness:
		return flagerror.New("store-witness", "must be true with --%s, because it says to which cluster the members belong", membersFlag)
	}
	return nil
}

func isHost(host string) bool {
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(host)) == 0
}
