// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Our programs that do not run. Nothing else can run meanwhile.
var controlFaults = map[string]fault{
	"the controller does not run": {
		alone: true,
		seed:  inTurn(becomesReady(), withoutProgram("controller"), func(k *kubectl) { k.ok("delete", "jobs", "train-workers-0", "--wait=false") }),
		want:  why.ControllerNotRunning, words: []string{"controller of JobSets does not run"},
	},
	"the leader of the controllers is lost": {
		alone: true,
		seed: inTurn(becomesReady(), withoutProgram("controller"), func(k *kubectl) {
			// As it is found after a crash.
			k.ok("patch", "lease", "6d4f6a47.jobset.x-k8s.io", "--namespace=jobset-system", "--type=merge", "-p",
				`{"spec":{"holderIdentity":"controller-x","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000000Z"}}`)
		}),
		want: why.ControllerNotRunning, words: []string{"controller of JobSets does not run"},
	},
	"the API server does not run": {
		alone: true, seed: inTurn(becomesReady(), withoutProgram("apiserver")),
		want: why.APIServiceUnavailable, words: []string{apiservice.JobSets},
	},
	"the API service is gone": {
		alone: true,
		seed: inTurn(becomesReady(), withoutProgram("apiserver"), func(k *kubectl) {
			// The start of the API server registers it again.
			k.ok("delete", "apiservice", apiservice.JobSets)
		}),
		want: why.APIServiceUnavailable, words: []string{"does not serve JobSets"},
	},
}

// withGates runs our programs with the feature gates until the end of the test.
func withGates(gates string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		gated := *k.cluster
		gated.Env = append(slices.Clone(gated.Env),
			"CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown+" --feature-gates="+gates, "CLUSTER_CONTROLLER_ARGS=--feature-gates="+gates)
		start := func(c *cluster) {
			for _, component := range []string{"apiserver", "controller"} {
				if err := c.Script("start", component); err != nil {
					k.Error(err)
				}
			}
		}
		k.Cleanup(func() { start(k.cluster) })
		start(&gated)
	}
}

// withoutProgram stops one of our programs until the end of the test.
func withoutProgram(component string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		if err := k.cluster.Script("stop", component); err != nil {
			k.Fatal(err)
		}
		k.Cleanup(func() {
			if err := k.cluster.Script("start", component); err != nil {
				k.Error(err)
			}
		})
	}
}
