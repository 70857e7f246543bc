// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes moves sets with real containers on two real nodes from upstream's controller to our server, and back. It needs
// root, and does nothing without it.
package nodes

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// settings are the settings of the cluster. The Service of our server names this machine, where it is a process: kube-apiserver
// asks for its address, and for no endpoints.
var settings = []string{
	"CLUSTER_REAL_NODES=2", "CLUSTER_NODES=0", "CLUSTER_COMPONENTS=images", "CLUSTER_KUBE_APISERVER_ARGS=--enable-aggregator-routing=false",
}

// upstream is the controller of upstream.
var upstream = handover.Controllers{handover.JobSets()}

var cluster *handover.Cluster

func TestMain(m *testing.M) {
	suite.Main("take-over on nodes", func() (int, error) { return runSuite(m) })
}

func runSuite(m *testing.M) (int, error) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "real nodes need root: nothing is tested")
		return 0, nil
	}
	const borrowed = "" // the programs are started and stopped here
	local, err := localcluster.New(".cluster-take-over-nodes", borrowed, settings...)
	if err != nil {
		return 0, err
	}
	defer upstream.Kill() // its cluster is gone by then
	defer func() { cluster.KillServer() }()
	return local.Run(m, func() (err error) {
		if cluster, err = handover.Connect(local); err != nil {
			return err
		}
		if err := upstream.Install(context.Background(), local); err != nil {
			return err
		}
		return upstream.Start(context.Background())
	})
}
