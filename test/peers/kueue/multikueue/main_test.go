// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multikueue runs our kinds in two clusters that the real Kueue connects: users create objects at the manager,
// and Kueue runs them at the worker. It starts both clusters, or uses those whose directories are in
// JOBSET_MULTIKUEUE_MANAGER_DIR and JOBSET_MULTIKUEUE_WORKER_DIR, which run no Kueue.
package multikueue

import (
	"context"
	"errors"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/peers"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// configuration is Kueue's. SequentialJob is an external framework at both sides, of which only MultiKueue knows.
const configuration = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: $PORT, certDir: $CERTIFICATES}
leaderElection: {leaderElect: false}
clientConnection: {qps: 200, burst: 400}
multiKueue:
  gcInterval: 5s
  workerLostTimeout: 5m
  externalFrameworks: [{name: SequentialJob.v1alpha1.batch.jobset-apiserver.io}]
integrations:
  frameworks: [batch/job, jobset.x-k8s.io/jobset, pod, statefulset, leaderworkerset.x-k8s.io/leaderworkerset]
`

// site is a cluster with a Kueue of its own.
type site struct {
	*localcluster.Cluster
	kueue *peers.Peer
}

// manager is where users create objects, worker where they run, and link the connection that Kueue has from the one to the other.
var (
	manager, worker site
	link            *connection
)

func newSite(name, variable string) (site, error) {
	cluster, err := localcluster.New(name, variable, "CLUSTER_NODES=10", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
	return site{cluster, &peers.Peer{
		Name: "kueue", Module: "sigs.k8s.io/kueue", Bases: []string{"config/default"},
		Args: []string{"--config=$CONFIG", "--feature-gates=VisibilityOnDemand=false"}, Namespace: "kueue-system", ServiceAccount: "kueue-controller-manager",
		Secret: "kueue-webhook-server-cert", Authority: "kueue-ca", Service: "kueue-webhook-service.kueue-system.svc",
	}}, err
}

// start installs Kueue in the cluster, and starts it.
func (s site) start() error {
	if err := s.kueue.Install(context.Background(), s.Cluster); err != nil {
		return err
	}
	return s.kueue.Start(context.Background(), configuration)
}

func TestMain(m *testing.M) {
	suite.Main("multikueue", func() (code int, err error) {
		if manager, err = newSite(".cluster-multikueue-manager", "JOBSET_MULTIKUEUE_MANAGER_DIR"); err != nil {
			return 0, err
		}
		if worker, err = newSite(".cluster-multikueue-worker", "JOBSET_MULTIKUEUE_WORKER_DIR"); err != nil {
			return 0, err
		}
		defer manager.kueue.Kill() // the clusters are gone by then
		defer worker.kueue.Kill()
		defer func() { link.close() }()
		if !worker.Borrowed {
			if err := errors.Join(worker.Stop(false), worker.Script("up")); err != nil {
				return 0, errors.Join(err, worker.Stop(false))
			}
			defer func() { err = errors.Join(err, worker.Stop(err == nil && code == 0)) }()
		}
		return manager.Run(m, func() error {
			if link, err = connect(worker.Cluster); err != nil {
				return err
			}
			return errors.Join(worker.start(), manager.start())
		})
	})
}
