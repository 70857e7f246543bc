// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trainer runs TrainJobs of the real Kubeflow Trainer, which creates JobSets on our server, on simulated nodes.
// It starts a cluster of its own, or uses the one whose directory is in JOBSET_TRAINER_CLUSTER_DIR, which runs no
// Trainer.
package trainer

import (
	"context"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/peers"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// configuration is Trainer's.
const configuration = `apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
`

var (
	cluster *localcluster.Cluster
	trainer = &peers.Peer{
		Name: "trainer", Module: "github.com/kubeflow/trainer/v2",
		Bases:     []string{"manifests/base/crds", "manifests/base/rbac", "manifests/base/webhook"},
		Namespace: "kubeflow-system", ServiceAccount: "kubeflow-trainer-controller-manager",
		Secret: "kubeflow-trainer-webhook-cert", Authority: "kubeflow-trainer-ca", Service: "kubeflow-trainer-controller-manager.kubeflow-system.svc",
		CertificateDir: "/tmp/k8s-webhook-server/serving-certs", // no flag changes it
		Args:           []string{"--webhook-server-port=$PORT", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
	}
)

func TestMain(m *testing.M) {
	suite.Main("trainer", func() (code int, err error) {
		cluster, err = localcluster.New(".cluster-trainer", "JOBSET_TRAINER_CLUSTER_DIR", "CLUSTER_NODES=20", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
		if err != nil {
			return 0, err
		}
		defer trainer.Kill() // its cluster is gone by then
		return cluster.Run(m, func() error {
			if err := trainer.Install(context.Background(), cluster); err != nil {
				return err
			}
			if err := trainer.Start(context.Background(), configuration); err != nil {
				return err
			}
			return trainer.Apply("manifests/base/runtimes")
		})
	})
}
