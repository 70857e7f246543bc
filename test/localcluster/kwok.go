// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import "path/filepath"

// kwokController plays the kubelets of the simulated nodes. It is not started by kwokctl, which would make it an administrator: its own
// user has the permissions in hack/kwok/access.yaml, and cannot delete a pod unless that pod is being deleted.
var kwokController = component{
	name: "kwok-controller", command: (*supervisor).kwokCommand, environment: (*supervisor).kubeEnvironment,
}

// kwokCommand is the command line that kwokctl would choose, without the server of logs and metrics.
func (c *supervisor) kwokCommand() []string {
	nodes := []string{"--manage-all-nodes=true"}
	if c.realNodes > 0 {
		// KWOK does not play the containers of real nodes.
		nodes = []string{"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"}
	}
	return append([]string{filepath.Join(c.binaries, "kwok"), "--kubeconfig=" + c.path("kwok.kubeconfig"),
		"--config=" + filepath.Join(c.root, "hack", "kwok", "stages.yaml"), "--node-ip=", "--node-lease-duration-seconds=200"}, nodes...)
}

// upKwok starts KWOK once its permissions are there.
func (c *supervisor) upKwok() error {
	if err := c.applyPath("-f", filepath.Join(c.root, "hack", "kwok", "access.yaml")); err != nil {
		return err
	}
	if err := c.writeIdentity(c.path("kwok.kubeconfig"), c.admin.server, kwokController.name, ""); err != nil {
		return err
	}
	return c.startComponent(kwokController)
}
