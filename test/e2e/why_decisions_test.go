// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// What a user decided, and what is normal.
var decisionFaults = map[string]fault{
	"a user suspended the set": {
		seed: inTurn(becomesReady(), func(k *kubectl) { k.pluginOK("suspend", "train", "--reason", "disk is full") }),
		want: why.SuspendedByUser, words: []string{"suspended by kwok-admin", "disk is full"},
	},
	"the set was created suspended": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }),
		want: why.SuspendedByUser, words: []string{"created suspended, with kubectl"},
	},
	"a user edited spec.suspend": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.ok("patch", "jobset", "train", "--type=merge", "--field-manager=night-shift", "-p", `{"spec":{"suspend":true}}`)
		}),
		want: why.SuspendedByUser, words: []string{"suspended by kwok-admin"},
	},
	"an owner suspended the set": {
		seed: func(k *kubectl) {
			k.ok("create", "configmap", "parent")
			uid := k.field("configmap/parent", "{.metadata.uid}")
			makes(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })(k)
			k.ok("patch", "jobset", "train", "--type=merge", "-p",
				`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"parent","uid":"`+uid+`","controller":true}]}}`)
		},
		want: why.SuspendedByOwner, words: []string{"ConfigMap parent"},
	},
	"a user cancelled the set": {
		seed: inTurn(becomesReady(), func(k *kubectl) { k.pluginOK("cancel", "train", "--reason", "wrong data") }),
		want: why.Cancelled, words: []string{"cancelled by kwok-admin", "wrong data"},
	},
	"another controller manages the set": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }),
		want: why.ManagedByOther, words: []string{"example.com/other"},
	},
	"a dependency is not ready": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) {
			builders.WithJobs("readers", 1, 1, runningOn)(js)
			js.Spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{Name: "workers", Status: jobsetv1alpha2.DependencyReady}}
			neverStarting(&js.Spec.ReplicatedJobs[0])
		}),
		want: why.DependsOn, words: []string{"readers waits until workers is ready: 0 of 2 jobs"},
	},
	"a dependency is not complete": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) {
			builders.WithJobs("readers", 1, 1, runningOn)(js)
			js.Spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{Name: "workers", Status: jobsetv1alpha2.DependencyComplete}}
		}),
		want: why.DependsOn, words: []string{"readers waits until workers is complete: 0 of 2 jobs"},
	},
	"the startup order is not reached": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) {
			builders.WithJobs("readers", 1, 1, runningOn)(js)
			js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.InOrder}
			neverStarting(&js.Spec.ReplicatedJobs[0])
		}),
		want: why.StartupOrder, words: []string{"readers waits until workers has started", "0 of 2 jobs"},
	},
	"a restart is in progress": {
		seed: inTurn(becomesReady(podSpecs(longGrace), everyJob(neverEnding)), func(k *kubectl) {
			k.pluginOK("restart", "train", "--reason", "new driver")
		}),
		want: why.Restarting, words: []string{"attempt 2 (Requested) by kwok-admin", "new driver"},
	},
	"the set runs": {
		seed: becomesReady(), want: why.Running, words: []string{"2 of 2 jobs ready", "attempt 1"},
	},
	"the set is complete": {
		seed: inTurn(makes(everyJob(annotated("jobset-apiserver.io/kwok-outcome", "succeeded"), annotated("jobset-apiserver.io/kwok-run-seconds", "0"))), func(k *kubectl) {
			k.wait("--for=condition=Completed", "jobset/train")
		}),
		want: why.Completed, words: []string{"2 of 2 jobs succeeded"},
	},
	"the set has just begun": {
		// The pods get their nodes in the future, so that they are not late while the test looks.
		seed: inTurn(makes(everyJob(neverStarting)), func(k *kubectl) {
			for _, job := range []string{"train-workers-0", "train-workers-1"} {
				k.podStatus(k.podOnNode(job), `{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2099-01-01T00:00:00Z"}]}`)
			}
		}),
		want: why.Starting, words: []string{"0 of 2 jobs ready"},
	},
	"the set is being deleted": {
		seed: inTurn(becomesReady(podSpecs(longGrace), everyJob(neverEnding)), func(k *kubectl) {
			k.ok("delete", "jobset", "train", "--cascade=foreground", "--wait=false")
		}),
		want: why.Deleting, words: []string{"was deleted"},
	},
	"there is no set of that name": {
		seed: func(k *kubectl) { k.okIn(strings.Replace(calmSet(), `"train"`, `"trains"`, 1), "create", "-f", "-") },
		want: why.NotFound, words: []string{"there is no JobSet", "DisaggregatedSet train in the namespace"},
	},
	"a finalizer of the set blocks its deletion": {
		seed: inTurn(makes(func(js *jobsetv1alpha2.JobSet) { js.Finalizers = []string{"example.com/hold"} }), func(k *kubectl) {
			k.release("jobset/train")
			k.ok("delete", "jobset", "train", "--wait=false")
		}),
		want: why.FinalizerBlocksDeletion, words: []string{"example.com/hold"},
	},
	"a finalizer of a Job blocks the deletion of the set": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.hold("job/train-workers-0")
			k.ok("delete", "jobset", "train", "--cascade=foreground", "--wait=false")
		}),
		want: why.FinalizerBlocksDeletion, words: []string{"example.com/hold", "job/train-workers-0", "cannot be deleted"},
	},
	"a finalizer of a pod blocks a restart": {
		seed: inTurn(becomesReady(podSpecs(shortGrace)), func(k *kubectl) {
			k.hold("pod/" + k.podNamed("train-workers-1"))
			k.pluginOK("restart", "train")
		}),
		want: why.FinalizerBlocksDeletion, words: []string{"example.com/hold", "pod/train-workers-1-", "the restart cannot continue"},
	},
	"a Job of a deleted set is held by a finalizer": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.hold("job/train-workers-0")
			k.ok("delete", "jobset", "train")
		}),
		want: why.NotFound, words: []string{"there is no JobSet", "DisaggregatedSet train in the namespace"},
	},
}

// hold keeps an object with a finalizer until the end of the test.
func (k *kubectl) hold(object string) {
	k.Helper()
	patch := `[{"op":"add","path":"/metadata/finalizers","value":["example.com/hold"]}]`
	if k.field(object, "{.metadata.finalizers}") != "" {
		patch = `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]`
	}
	k.ok("patch", object, "--type=json", "-p", patch)
	k.release(object)
}

// letGo ends what hold does.
func (k *kubectl) letGo(object string) {
	k.Helper()
	k.eventually(func() string {
		var left []string
		for _, finalizer := range strings.Fields(k.field(object, "{.metadata.finalizers[*]}")) {
			if finalizer != "example.com/hold" {
				left = append(left, finalizer)
			}
		}
		content, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left}})
		if err != nil {
			return err.Error()
		}
		k.ok("patch", object, "--type=merge", "-p", string(content))
		return ""
	})
}

// release removes what holds an object at the end of the test, so that its namespace can go away.
func (k *kubectl) release(object string) {
	k.Cleanup(func() {
		k.eventually(func() string {
			r := k.run("", "patch", object, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			if r.code != 0 && !strings.Contains(r.stderr, "NotFound") {
				return r.stderr
			}
			return ""
		})
	})
}
