// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

const (
	// slowHealth and slowReadiness are how long the embedded etcd may take to answer the checks of /livez and /readyz. They are below
	// the timeouts of the probes in the manifests.
	slowHealth    = 8 * time.Second
	slowReadiness = 4 * time.Second
)

// allowSlowDisk gives the embedded etcd more time for its checks, unless flags say otherwise. A restart does not make its disk faster,
// and there is no other server that could answer instead.
func allowSlowDisk(options *genericoptions.EtcdOptions) {
	if options.StorageConfig.HealthcheckTimeout == storagebackend.DefaultHealthcheckTimeout {
		options.StorageConfig.HealthcheckTimeout = slowHealth
	}
	if options.StorageConfig.ReadycheckTimeout == storagebackend.DefaultReadinessTimeout {
		options.StorageConfig.ReadycheckTimeout = slowReadiness
	}
}

// checkReadinessOnce takes the check of /livez out of /readyz, which has one of its own: they run one after the other, and both together
// would take longer than the probe allows.
func checkReadinessOnce(config *server.Config) {
	config.ReadyzChecks = slices.DeleteFunc(config.ReadyzChecks, func(c healthz.HealthChecker) bool { return c.Name() == "etcd" })
}
