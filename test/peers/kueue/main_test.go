// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue runs our kinds in queues of the real Kueue, on simulated nodes. It starts a cluster of its own, or uses
// the one whose directory is in JOBSET_KUEUE_CLUSTER_DIR, which runs no Kueue.
package kueue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/peers"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// stableTime is how long nothing may change for a state to be final.
	stableTime = 15 * time.Second
)

// configuration is Kueue's, with further lines at the end.
const configuration = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: $PORT, certDir: $CERTIFICATES}
leaderElection: {leaderElect: false}
clientConnection: {qps: 200, burst: 400}
integrations:
  frameworks: [batch/job, jobset.x-k8s.io/jobset, pod, statefulset, leaderworkerset.x-k8s.io/leaderworkerset]
`

var (
	cluster *localcluster.Cluster
	kueue   = &peers.Peer{
		Name: "kueue", Module: "sigs.k8s.io/kueue", Bases: []string{"config/default"},
		Args: []string{"--config=$CONFIG", "--feature-gates=VisibilityOnDemand=false"}, Namespace: "kueue-system", ServiceAccount: "kueue-controller-manager",
		Secret: "kueue-webhook-server-cert", Authority: "kueue-ca", Service: "kueue-webhook-service.kueue-system.svc",
	}
)

func TestMain(m *testing.M) {
	suite.Main("kueue", func() (code int, err error) {
		cluster, err = localcluster.New(".cluster-kueue", "JOBSET_KUEUE_CLUSTER_DIR", "CLUSTER_NODES=20", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown)
		if err != nil {
			return 0, err
		}
		defer kueue.Kill() // its cluster is gone by then
		return cluster.Run(m, func() error {
			if err := kueue.Install(context.Background(), cluster); err != nil {
				return err
			}
			return kueue.Start(context.Background(), configuration)
		})
	})
}

// configured runs the test with further lines in Kueue's configuration. No other test runs meanwhile.
func configured(t *testing.T, lines string) {
	t.Helper()
	restart := func(configuration string) {
		if err := kueue.Stop(); err != nil {
			t.Error(err)
		}
		if err := kueue.Start(context.Background(), configuration); err != nil {
			t.Fatal(err)
		}
	}
	restart(configuration + lines)
	t.Cleanup(func() { restart(configuration) })
}

// queue makes a LocalQueue named team for the namespace of the test, with a ClusterQueue of its own that has that many CPUs.
func queue(k *kubectl.Kubectl, cpus int) {
	k.Helper()
	k.OKIn(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: %[1]s
      resources: [{name: cpu, nominalQuota: %[2]d}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: %[1]s}
`, k.Namespace, cpus), "apply", "-f", "-")
	k.Cleanup(func() { k.Run("", "delete", "clusterqueue,resourceflavor", k.Namespace, "--wait=false") })
}

// reserved awaits the quota that is reserved in the ClusterQueue of the test.
func reserved(k *kubectl.Kubectl, cpu string) {
	k.Helper()
	k.Awaits("clusterqueue/"+k.Namespace, "{.status.flavorsReservation[0].resources[0].total}", cpu)
}

// ends makes the pods that the selector selects end.
func ends(k *kubectl.Kubectl, selector, outcome string) {
	k.Helper()
	k.OK("annotate", "pods", "-l", selector, "--overwrite", "jobset-apiserver.io/kwok-outcome="+outcome)
}
