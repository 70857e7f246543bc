// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
)

func TestMembers(t *testing.T) {
	good := []string{"js-0.members.ns.svc", "js-1.members.ns.svc", "js-2.members.ns.svc"}
	for name, tc := range map[string]struct {
		members []string
		change  func(s *StorageOptions)
		servers []string
		want    string
	}{
		"none":                           {},
		"three hosts":                    {members: good},
		"the last of them":               {members: good, change: func(s *StorageOptions) { s.PodName = "js-2" }},
		"addresses":                      {members: []string{"127.0.0.1", "127.0.0.2", "::1"}},
		"two hosts":                      {members: good[:2], want: "--embedded-etcd-members: must name 3 different hosts"},
		"a host twice":                   {members: []string{"a", "b", "a"}, want: "--embedded-etcd-members: must name 3 different hosts"},
		"a port":                         {members: []string{"a", "b", "c:2380"}, want: "--embedded-etcd-members: must have DNS names or IP addresses without a port"},
		"a pod that is not a member":     {members: good, change: func(s *StorageOptions) { s.PodName = "js-3" }, want: "--pod-name: must end in the ordinal"},
		"a pod without an ordinal":       {members: good, change: func(s *StorageOptions) { s.PodName = "" }, want: "--pod-name: must end in the ordinal"},
		"no witness":                     {members: good, change: func(s *StorageOptions) { s.Witness = false }, want: "--store-witness: must be true"},
		"beside an etcd elsewhere":       {members: good, change: func(s *StorageOptions) { s.DataDir = "" }, servers: []string{"https://etcd:2379"}, want: "--embedded-etcd-members: must not be set together with --etcd-servers"},
		"the second pod of a single one": {change: func(s *StorageOptions) { s.PodName = "js-1" }, want: "--pod-name: "},
	} {
		s, external := NewStorageOptions(), genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
		s.DataDir, s.PodName, s.Members, external.StorageConfig.Transport.ServerList = "/var/lib/js", "js-0", tc.members, tc.servers
		if tc.change != nil {
			tc.change(s)
		}
		err := s.Validate(external)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestClusterOfMembers(t *testing.T) {
	serving := &genericoptions.SecureServingOptionsWithLoopback{SecureServingOptions: &genericoptions.SecureServingOptions{BindAddress: net.IPv4zero}}
	o := &Options{Storage: NewStorageOptions(), Recommended: &genericoptions.RecommendedOptions{SecureServing: serving}}
	if o.Cluster() != nil {
		t.Error("there are members by default")
	}
	o.Storage.Members, o.Storage.PodName, o.Storage.DataDir = []string{"a", "b", "c"}, "jobset-apiserver-1", "/data"
	want := &etcd.Cluster{Hosts: []string{"a", "b", "c"}, Ordinal: 1, Name: "jobset-apiserver-", Address: "0.0.0.0", Certificates: "/data/peers"}
	if diff := cmp.Diff(want, o.Cluster()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := o.validateMembers(); err == nil || !strings.HasPrefix(err.Error(), "--embedded-etcd-members: needs --tls-managed-secret") {
		t.Errorf("without a Secret: %v", err)
	}
	if o.ManagedCert.Secret = "ns/certs"; o.validateMembers() != nil || o.ManagedCert.Peers().Secret != "ns/certs-peers" {
		t.Errorf("with a Secret: %v, %s", o.validateMembers(), o.ManagedCert.Peers().Secret)
	}
}
