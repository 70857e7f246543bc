// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of all choices")

// newDice returns the source of the choices of one test.
func newDice(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("repeat the choices with -seed=%d", *seed)
	return rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // choices, not secrets
}

// cluster is a running control plane whose controllers belong to the tests.
type cluster struct {
	*localcluster.Cluster
	config  *rest.Config
	kube    kubernetes.Interface
	jobSets versioned.Interface
}

// shared is the control plane of this package.
var shared *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	local, err := localcluster.New(".cluster-faults", "JOBSET_FAULTS_CLUSTER_DIR", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
	if err != nil {
		return 0, err
	}
	shared = &cluster{Cluster: local}
	return local.Run(m, func() error {
		if !local.Borrowed {
			if err := local.Script("stop", "controller"); err != nil {
				return err
			}
		}
		return shared.connect()
	})
}

// connect makes the clients.
func (c *cluster) connect() error {
	var err error
	if c.config, err = c.Config(); err != nil {
		return err
	}
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.jobSets, err = versioned.NewForConfig(c.config)
	return err
}

// restartAPIServer stops our API server, which has JobSets and their store in one process, and starts it again.
func (c *cluster) restartAPIServer() error {
	if err := c.Script("stop", "apiserver"); err != nil {
		return err
	}
	return c.Script("start", "apiserver")
}
