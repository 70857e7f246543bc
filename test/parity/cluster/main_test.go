// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster has a test for every example that upstream gives its users (docs/compatibility.md#examples) and for
// every one of its end-to-end tests (docs/compatibility.md#end-to-end), named after the row. They run in a whole
// control plane of their own, in which simulated nodes play the pods: nothing is executed, so what happens inside of
// containers is checked at the pods that they would be started from. The gates RestartJob, ElasticJobSet and
// InPlaceRestart are on.
package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const gates = "--feature-gates=RestartJob=true,ElasticJobSet=true,InPlaceRestart=true"

// cluster is the control plane of the package.
type cluster struct {
	*localcluster.Cluster
	kubectl string
	// groups is the flag of kube-apiserver for the API of groups of pods; empty if this version of Kubernetes has none.
	groups string
	*framework.Clients
}

var shared *cluster

func TestMain(m *testing.M) {
	suite.Main("parity", func() (int, error) { return runSuite(m) })
}

// runSuite stops what it started whatever ends the tests. The API of pod groups is switched on in kube-apiserver for the
// rows of workload-aware scheduling; the scheduler does not act on it.
func runSuite(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "jobset-parity-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := localcluster.Root()
	if err != nil {
		return 0, err
	}
	binaries, err := localcluster.TestBinaries(root)
	if err != nil {
		return 0, err
	}
	version, err := localcluster.Version(binaries)
	if err != nil {
		return 0, err
	}
	kubeGates, api := localcluster.SchedulingFlags(version)
	shared = &cluster{groups: api, Cluster: &localcluster.Cluster{
		Root: root, Dir: filepath.Join(dir, "cluster"),
		Env: []string{
			"CLUSTER_NODES=8", "CLUSTER_APISERVER_ARGS=" + gates, "CLUSTER_CONTROLLER_ARGS=" + gates,
			"CLUSTER_KUBE_APISERVER_ARGS=" + kubeGates + " " + api,
		},
	}}
	if err := shared.findKubectl(); err != nil {
		return 0, err
	}
	return shared.Run(m, shared.connect)
}

// findKubectl finds the kubectl of the control plane.
func (c *cluster) findKubectl() error {
	binaries, err := localcluster.TestBinaries(c.Root)
	if err != nil {
		return err
	}
	c.kubectl = filepath.Join(binaries, "kubectl")
	return nil
}

func (c *cluster) connect() error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	c.Clients, err = framework.NewClients(config)
	return err
}
