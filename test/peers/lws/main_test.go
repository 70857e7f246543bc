// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lws runs upstream's controller of LeaderWorkerSets, with its definition, beside our server and our controller, which leave these
// sets to it.
package lws

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// upstream is the controller of upstream.
var upstream = handover.Controllers{handover.LeaderWorkerSets()}

var cluster *handover.Cluster

func TestMain(m *testing.M) {
	suite.Main("lws", func() (int, error) {
		root, err := localcluster.Root()
		if err != nil {
			return 0, err
		}
		const borrowed = "" // the programs are started and stopped here
		local, err := localcluster.New(".cluster-lws", borrowed, "CLUSTER_COMPONENTS=none", "CLUSTER_NODES=10",
			"CLUSTER_KUBE_AUDIT_POLICY="+filepath.Join(root, "test", "peers", "lws", "testdata", "audit.yaml"))
		if err != nil {
			return 0, err
		}
		defer upstream.Kill() // its cluster is gone by then
		defer func() { cluster.KillServer() }()
		return local.Run(m, func() (err error) {
			ctx := context.Background()
			if cluster, err = handover.Connect(local); err != nil {
				return err
			}
			for _, group := range apiservice.Groups {
				if group != leaderWorkerSets {
					cluster.Groups = append(cluster.Groups, group)
				}
			}
			if err := upstream.Install(ctx, local); err != nil {
				return err
			}
			if err := upstream.Start(ctx); err != nil {
				return err
			}
			return cluster.StartServer(ctx)
		})
	})
}
