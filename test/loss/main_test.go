// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Sizes of the tests.
var (
	sets    = number("JOBSET_LOSS_SETS", 30)
	watched = time.Duration(number("JOBSET_LOSS_SECONDS", 20)) * time.Second
)

func number(variable string, standard int) int {
	value := os.Getenv(variable)
	if value == "" {
		return standard
	}
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		panic(fmt.Sprintf("%s: must be a positive number, not %q", variable, value))
	}
	return n
}

// timeout bounds one step, also with many sets.
var timeout = framework.StepTimeout() + time.Duration(sets)*200*time.Millisecond

// cluster is a control plane whose API server belongs to the tests.
type cluster struct {
	*localcluster.Cluster
	*framework.Clients
	dynamic dynamic.Interface
	// command is the command line of the server, on the store of the cluster.
	command []string
	// right is the data directory of the store that the sets are in.
	right string
	// server runs now; nil if none does.
	server *framework.Process
}

// The control planes of this package. Tests of one do not wait for those of the other.
var first, second *cluster

func TestMain(m *testing.M) { suite.Main("loss", func() (int, error) { return runSuite(m) }) }

func runSuite(m *testing.M) (code int, err error) {
	if first, err = newCluster(".cluster-loss"); err != nil {
		return 0, err
	}
	if second, err = newCluster(".cluster-loss-2"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, second.Stop(err == nil && code == 0)) }()
	return first.Run(m, func() error {
		// The programs were built for the first one.
		second.Env = append(second.Env, "CLUSTER_BIN="+filepath.Dir(first.Program("jobset-apiserver")))
		return errors.Join(first.connect(), second.Stop(false), second.Script("up"), second.connect())
	})
}

func newCluster(name string) (*cluster, error) {
	const borrowed = "" // the tests need clusters of their own
	local, err := localcluster.New(name, borrowed, "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
	if err != nil {
		return nil, err
	}
	return &cluster{Cluster: local, right: filepath.Join(local.Dir, "data")}, nil
}

// connect makes the clients, and takes the server from the scripts.
func (c *cluster) connect() error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	clients, err1 := framework.NewClients(config)
	dynamics, err2 := dynamic.NewForConfig(config)
	recorded, err3 := os.ReadFile(filepath.Join(c.Dir, "pids", "jobset-apiserver.command"))
	c.Clients, c.dynamic, c.command = clients, dynamics, strings.Fields(string(recorded))
	return errors.Join(err1, err2, err3, c.Script("stop", "apiserver"))
}

// commandFor returns the command line of the server on another store.
func (c *cluster) commandFor(flags ...string) []string {
	others := slices.DeleteFunc(slices.Clone(c.command), func(flag string) bool { return strings.HasPrefix(flag, "--data-dir=") })
	return append(others, flags...)
}
