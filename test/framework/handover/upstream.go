// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/peers"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// jobSetDefaults configures upstream's controller of JobSets for this machine, and nothing else: it keeps the limits and feature gates of
// its release. It does not manage its certificates: it would wait for them in a directory that all clusters of a machine share, and that no flag
// changes.
const jobSetDefaults = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:0"}
metrics: {bindAddress: "127.0.0.1:$METRICS", certDir: $CERTIFICATES}
webhook: {host: 127.0.0.1, port: $PORT, certDir: $CERTIFICATES}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`

// jobSetSettings are what tests change: they restart pods in place, for which the controller then syncs a set with each change of a pod.
const jobSetSettings = `clientConnection: {qps: 200, burst: 400}
featureGates: {InPlaceRestart: true}
`

// groupsConfiguration configures upstream's controller of LeaderWorkerSets.
const groupsConfiguration = `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:0"}
metrics: {bindAddress: "127.0.0.1:$METRICS"}
webhook: {host: 127.0.0.1, port: $PORT, certDir: $CERTIFICATES}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
`

// Controllers are controllers of upstream, which are started and stopped together. They have no Deployments that the command
// could scale.
type Controllers []*Controller

// Controller is a controller of upstream with its configuration.
type Controller struct {
	*peers.Peer
	// MetricsPort is the port of its metrics; if it is empty, the system chooses one.
	MetricsPort   string
	configuration string
}

// Run starts the controller with its configuration, and returns when its webhooks answer.
func (c *Controller) Run(ctx context.Context) error {
	return c.Start(ctx, strings.ReplaceAll(c.configuration, "$METRICS", cmp.Or(c.MetricsPort, "0")))
}

// Released returns upstream's controllers with the limits and feature gates of their releases, that of JobSets first.
func Released() Controllers {
	jobSets := JobSets()
	jobSets.configuration = jobSetDefaults
	return Controllers{jobSets, LeaderWorkerSets()}
}

// JobSets returns upstream's controller of JobSets.
func JobSets() *Controller {
	return &Controller{Peer: &peers.Peer{
		Name: "jobset", Module: "sigs.k8s.io/jobset", Bases: []string{"config/default"}, Args: []string{"--config=$CONFIG"},
		Namespace: "jobset-system", ServiceAccount: "jobset-controller-manager", Secret: "jobset-webhook-server-cert",
		Authority: "jobset-ca", Service: "jobset-webhook-service.jobset-system.svc",
	}, configuration: jobSetDefaults + jobSetSettings}
}

// LeaderWorkerSets returns upstream's controller of LeaderWorkerSets.
func LeaderWorkerSets() *Controller {
	return &Controller{Peer: &peers.Peer{
		Name: "lws", Module: "sigs.k8s.io/lws", Bases: []string{"config/default"}, Args: []string{"--config=$CONFIG"},
		Namespace: "lws-system", ServiceAccount: "lws-controller-manager", Secret: "lws-webhook-server-cert",
		Authority: "lws-ca", Service: "lws-webhook-service.lws-system.svc",
	}, configuration: groupsConfiguration}
}

// Install installs them all.
func (c Controllers) Install(ctx context.Context, l *localcluster.Cluster) error {
	for _, each := range c {
		if err := each.Install(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// Start starts them all.
func (c Controllers) Start(ctx context.Context) error {
	for _, each := range c {
		if err := each.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops them all.
func (c Controllers) Stop() (err error) {
	for _, each := range c {
		err = errors.Join(err, each.Stop())
	}
	return err
}

// Kill kills what still runs.
func (c Controllers) Kill() {
	for _, each := range c {
		each.Kill()
	}
}
