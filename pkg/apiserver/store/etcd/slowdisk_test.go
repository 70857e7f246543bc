// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestSlowEtcdIsAlive has etcd answer too late for some time, answer, and then be too late for good.
func TestSlowEtcdIsAlive(t *testing.T) {
	var failure error
	other := errors.New("another check fails")
	check := healthz.NamedCheck(etcdCheck, func(*http.Request) error { return failure })
	clock := clocktesting.NewFakePassiveClock(time.Now())
	config := &server.Config{
		LivezChecks:  []healthz.HealthChecker{healthz.PingHealthz, check, healthz.NamedCheck("other", func(*http.Request) error { return other })},
		ReadyzChecks: []healthz.HealthChecker{check},
	}
	TolerateSlowDisk(config, clock)
	begin := clock.Now()
	for _, step := range []struct {
		at         time.Duration
		slow, dead bool
	}{
		{at: 0}, {at: time.Minute, slow: true}, {at: 5*time.Minute + 59*time.Second, slow: true}, {at: 6 * time.Minute},
		{at: 7 * time.Minute, slow: true}, {at: 12*time.Minute - time.Second, slow: true}, {at: 12 * time.Minute, slow: true, dead: true}, {at: time.Hour},
	} {
		clock.SetTime(begin.Add(step.at))
		failure = nil
		if step.slow {
			failure = errors.New("etcd failed to respond in time")
		}
		if err := config.LivezChecks[1].Check(nil); (err != nil) != step.dead {
			t.Errorf("after %s: /livez says %v", step.at, err)
		}
		if err := config.ReadyzChecks[0].Check(nil); !errors.Is(err, failure) {
			t.Errorf("after %s: /readyz says %v", step.at, err)
		}
		if err := config.LivezChecks[2].Check(nil); !errors.Is(err, other) {
			t.Errorf("after %s: another check of /livez says %v", step.at, err)
		}
	}
}
