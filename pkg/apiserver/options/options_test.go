// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/features"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	jobsetfeatures "github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// once is shared: the library's feature gates belong to the process and accept no more once flags were made of them.
var once = sync.OnceValues(NewOptions)

func newOptions(t *testing.T) *Options {
	t.Helper()
	o, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFlags(t *testing.T) {
	o := newOptions(t)
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	sections := o.Flags()
	for _, name := range sections.Order {
		all.AddFlagSet(sections.FlagSets[name])
	}
	// These are what manifests and scripts use; removing or renaming one breaks installations.
	for _, name := range []string{
		"secure-port", "bind-address", "cert-dir", "tls-cert-file", "tls-private-key-file", "tls-san", "kubeconfig",
		"authentication-kubeconfig", "authorization-kubeconfig", "etcd-servers", "etcd-cafile", "etcd-certfile",
		"etcd-keyfile", "data-dir", "storage", "pod-name", "allow-ephemeral-data", "backup-dir", "backup-interval", "backup-keep", "shutdown-delay-duration", "feature-gates", "runtime-config",
		"audit-policy-file", "audit-log-path", "v", "logging-format", "version",
	} {
		if all.Lookup(name) == nil {
			t.Errorf("--%s is missing", name)
		}
	}
	// These would be accepted and do nothing.
	for _, name := range []string{"etcd-servers-overrides", "storage-backend", "permit-port-sharing", "advertise-address"} {
		if all.Lookup(name) != nil {
			t.Errorf("--%s does nothing in this server", name)
		}
	}
	if err := all.Parse([]string{"--feature-gates=ElasticJobSet=true", "--kubeconfig=a", "--authorization-kubeconfig=b", "--data-dir=/d"}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := all.Parse([]string{"--feature-gates=ElasticJobSet=false"}); err != nil {
			t.Error(err)
		}
	}()
	if !o.Gate.Enabled(jobsetfeatures.ElasticJobSet) {
		t.Error("--feature-gates has no effect")
	}
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	got := []string{
		o.Recommended.Authentication.RemoteKubeConfigFile, o.Recommended.Authorization.RemoteKubeConfigFile,
		o.Recommended.SecureServing.ServerCert.CertDirectory, o.Limits.ShutdownDelayDuration.String(),
		o.Recommended.Authorization.AllowCacheTTL.String(),
	}
	if diff := cmp.Diff([]string{"a", "b", "/d/certificates", "15s", "10s"}, got); diff != "" {
		t.Errorf("derived values (-want +got):\n%s", diff)
	}
}

func TestLibraryKnowsWhichKubernetesItIs(t *testing.T) {
	o := newOptions(t)
	if !o.Gate.Enabled(features.MutatingAdmissionPolicy) {
		t.Error("gates of the library are off")
	}
	if o.Gate.Enabled(features.WatchListCompression) {
		t.Error("events of watches are compressed one by one")
	}
	if version := environment.DefaultCompatibilityVersion(); version.Major() != 1 || version.Minor() < 36 {
		t.Errorf("CEL is that of Kubernetes %s", version)
	}
}

func TestStorageDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(s *StorageOptions, external *genericoptions.EtcdOptions)
		want   string
	}{
		"a persistent directory": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) { s.DataDir = "/var/lib/jobset-apiserver" }},
		"a temporary directory":  {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) { s.DataDir = t.TempDir() }, want: "--data-dir"},
		"a temporary directory that is wanted": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.AllowEphemeralData = t.TempDir(), true
		}},
		"a negative interval": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.DefragmentInterval = "/var/lib/jobset-apiserver", -time.Second
		}, want: "--embedded-etcd-defragment-interval"},
		"certificates for no etcd": {change: func(s *StorageOptions, external *genericoptions.EtcdOptions) {
			s.DataDir, external.StorageConfig.Transport.CertFile = "/var/lib/jobset-apiserver", file
		}, want: "--etcd-cafile"},
		"the first pod of a StatefulSet": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.PodName, s.Installed = "/var/lib/jobset-apiserver", "jobset-apiserver-0", "embedded"
		}},
		"the second pod of a StatefulSet": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.PodName = "/var/lib/jobset-apiserver", "jobset-apiserver-1"
		}, want: "--pod-name"},
		"the eleventh pod of a StatefulSet": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.PodName = "/var/lib/jobset-apiserver", "jobset-apiserver-10"
		}, want: "--pod-name"},
		"a pod of something else": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.PodName = "/var/lib/jobset-apiserver", "jobset-apiserver-7d9f8-x1z2a"
		}},
		"the second pod with an external etcd": {change: func(s *StorageOptions, external *genericoptions.EtcdOptions) {
			external.StorageConfig.Transport.ServerList = []string{"https://etcd:2379"}
			s.PodName, s.Installed = "jobset-apiserver-1", "external"
		}},
		"the embedded storage in an installation with an external one": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.Installed = "/var/lib/jobset-apiserver", "external"
		}, want: "--storage"},
		"an external storage in an installation with the embedded one": {change: func(s *StorageOptions, external *genericoptions.EtcdOptions) {
			external.StorageConfig.Transport.ServerList = []string{"https://etcd:2379"}
			s.Installed = "embedded"
		}, want: "--storage"},
		"a storage that does not exist": {change: func(s *StorageOptions, _ *genericoptions.EtcdOptions) {
			s.DataDir, s.Installed = "/var/lib/jobset-apiserver", "$(STORAGE)"
		}, want: "--storage"},
		"an external etcd": {change: func(_ *StorageOptions, external *genericoptions.EtcdOptions) {
			external.StorageConfig.Transport.ServerList = []string{"https://etcd:2379"}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, external := NewStorageOptions(), genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
			c.change(s, external)
			err := s.Validate(external)
			if c.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want+": ")) {
				t.Errorf("error is %v, not one of %s", err, c.want)
			}
		})
	}
}
