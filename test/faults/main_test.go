// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var seed = flag.Uint64("seed", defaultSeed(), "seed of all choices")

// defaultSeed is the same in each run of the gate, so that the gate does not fail unless something has changed.
func defaultSeed() uint64 {
	if tier.Long() {
		return uint64(time.Now().UnixNano())
	}
	return 1
}

// newDice returns the source of the choices of one test.
func newDice(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("repeat the choices with -seed=%d", *seed)
	return rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // choices, not secrets
}

// cluster is a running control plane whose controllers belong to the tests.
type cluster struct {
	*localcluster.Cluster
	*framework.Clients
}

// shared is the control plane of this package.
var shared *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	suite.Main("faults", func() (int, error) { return runSuite(m) })
}

func runSuite(m *testing.M) (int, error) {
	const borrowed = "" // the tests stop and restore the control plane, so they need one of their own
	local, err := localcluster.New(".cluster-faults", borrowed, "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
	if err != nil {
		return 0, err
	}
	shared = &cluster{Cluster: local}
	code, err := local.Run(m, func() error {
		if err := local.Script("stop", "controller"); err != nil {
			return err
		}
		return shared.connect()
	})
	if several != nil {
		err = errors.Join(err, several.stop(err == nil && code == 0))
	}
	if ofMembers != nil {
		err = errors.Join(err, ofMembers.stop(err == nil && code == 0))
	}
	return code, errors.Join(err, printReports(local.Root))
}

// connect makes the clients.
func (c *cluster) connect() error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	c.Clients, err = framework.NewClients(config)
	return err
}

// restartAPIServer stops our API server, which has JobSets and their store in one process, and starts it again.
func (c *cluster) restartAPIServer() error {
	if err := c.Script("stop", "apiserver"); err != nil {
		return err
	}
	return c.Script("start", "apiserver")
}
