// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// slowHealth and slowReadiness are how long the embedded etcd may take to answer the checks of /livez and /readyz. They are below
	// the timeouts of the probes in the manifests.
	slowHealth    = 8 * time.Second
	slowReadiness = 4 * time.Second
	// slowTolerance is how long the embedded etcd may miss these times before /livez fails, and slowReport how often the
	// log says that it does.
	slowTolerance, slowReport = 5 * time.Minute, 30 * time.Second
)

// AllowSlowDisk gives the embedded etcd more time for its checks, unless flags say otherwise. A restart does not make its disk faster,
// and there is no other server that could answer instead.
func AllowSlowDisk(options *genericoptions.EtcdOptions) {
	if options.StorageConfig.HealthcheckTimeout == storagebackend.DefaultHealthcheckTimeout {
		options.StorageConfig.HealthcheckTimeout = slowHealth
	}
	if options.StorageConfig.ReadycheckTimeout == storagebackend.DefaultReadinessTimeout {
		options.StorageConfig.ReadycheckTimeout = slowReadiness
	}
}

// etcdCheck is the name that the library gives the check of the store.
const etcdCheck = "etcd"

// TolerateSlowDisk lets /livez pass while the embedded etcd answers too late, unless that lasts: the kubelet would kill
// the server, and its start would have to read and write on the same disk.
func TolerateSlowDisk(config *server.Config, c clock.PassiveClock) {
	for _, checks := range [][]healthz.HealthChecker{config.LivezChecks, config.HealthzChecks} {
		for i, check := range checks {
			if check.Name() == etcdCheck {
				checks[i] = &tolerant{HealthChecker: check, clock: c}
			}
		}
	}
}

// tolerant is a check that fails only after it has failed for some time.
type tolerant struct {
	healthz.HealthChecker
	clock clock.PassiveClock

	mu                     sync.Mutex
	failingSince, reported time.Time
}

// Check implements healthz.HealthChecker.
func (t *tolerant) Check(req *http.Request) error {
	err := t.HealthChecker.Check(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	switch {
	case err == nil:
		t.failingSince = time.Time{}
		return nil
	case t.failingSince.IsZero():
		t.failingSince = now
	}
	if now.Sub(t.reported) >= slowReport {
		t.reported = now
		klog.Background().Error(err, "The embedded etcd is slow: requests take long or fail; look at the disk of --data-dir", "since",
			t.failingSince.UTC().Format(time.RFC3339))
	}
	if now.Sub(t.failingSince) < slowTolerance {
		return nil
	}
	return err
}

// CheckReadinessOnce takes the check of /livez out of /readyz, which has one of its own: they run one after the other, and both together
// would take longer than the probe allows.
func CheckReadinessOnce(config *server.Config) {
	config.ReadyzChecks = slices.DeleteFunc(config.ReadyzChecks, func(c healthz.HealthChecker) bool { return c.Name() == etcdCheck })
}

// LiveWithoutStore lets /livez pass while the store does not answer.
func LiveWithoutStore(config *server.Config) {
	for _, checks := range []*[]healthz.HealthChecker{&config.LivezChecks, &config.HealthzChecks} {
		*checks = slices.DeleteFunc(*checks, func(c healthz.HealthChecker) bool { return c.Name() == etcdCheck })
	}
}
