// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover moves sets from the controllers of upstream, which run as they are released, to our server under running
// pods, and back.
package takeover

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// upstream are the controllers of upstream.
var upstream = handover.Controllers{handover.JobSets(), handover.LeaderWorkerSets()}

var cluster *handover.Cluster

func TestMain(m *testing.M) {
	suite.Main("take-over", func() (int, error) {
		const borrowed = "" // the programs are started and stopped here
		local, err := localcluster.New(".cluster-take-over", borrowed, "CLUSTER_COMPONENTS=none", "CLUSTER_NODES=60")
		if err != nil {
			return 0, err
		}
		defer upstream.Kill() // its cluster is gone by then
		defer func() { cluster.KillServer() }()
		return local.Run(m, func() (err error) {
			if cluster, err = handover.Connect(local); err != nil {
				return err
			}
			if wanted := os.Getenv("JOBSET_TAKEOVER_SERVERS"); wanted != "" {
				if cluster.Servers, err = strconv.Atoi(wanted); err != nil {
					return fmt.Errorf("JOBSET_TAKEOVER_SERVERS: %w", err)
				}
			}
			if err := upstream.Install(context.Background(), local); err != nil {
				return err
			}
			return upstream.Start(context.Background())
		})
	})
}
