// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	exclusiveKey = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	selectorKey  = "alpha.jobset.sigs.k8s.io/node-selector"
)

func annotated(target func(*api.JobSet) *map[string]string, pairs ...string) func(*api.JobSet) {
	return func(js *api.JobSet) {
		annotations := target(js)
		*annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			(*annotations)[pairs[i]] = pairs[i+1]
		}
	}
}

func onSet(js *api.JobSet) *map[string]string { return &js.Annotations }
func onTemplate(js *api.JobSet) *map[string]string {
	return &js.Spec.ReplicatedJobs[0].Template.Annotations
}
func onPod(js *api.JobSet) *map[string]string {
	return &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations
}

func all(changes ...func(*api.JobSet)) func(*api.JobSet) {
	return func(js *api.JobSet) {
		for _, f := range changes {
			f(js)
		}
	}
}

func nonIndexed(js *api.JobSet) {
	js.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
}

func backoff(limit int32) func(*api.JobSet) {
	return func(js *api.JobSet) { js.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = ptr.To(limit) }
}

func failurePolicy(strategy api.JobSetRestartStrategy, maxRestarts int32) func(*api.JobSet) {
	return func(js *api.JobSet) {
		js.Spec.FailurePolicy = &api.FailurePolicy{RestartStrategy: strategy, MaxRestarts: maxRestarts}
	}
}

// named makes a set of one replicatedJob "w" whose name has so many characters.
func named(length int, more ...func(*api.JobSet)) func(*api.JobSet) {
	return func(js *api.JobSet) {
		*js = *builders.Hub(strings.Repeat("a", length), builders.WithHubJobs("w", 1, 1))
		js.UID = "1"
		all(more...)(js)
	}
}

func noCompletions(js *api.JobSet) { js.Spec.ReplicatedJobs[0].Template.Spec.Completions = nil }

var warningCases = map[string]struct {
	change func(*api.JobSet)
	want   []string
}{
	"nothing to warn of": {change: func(*api.JobSet) {}},
	"exclusive placement as it should be": {
		change: all(annotated(onSet, exclusiveKey, "rack"), annotated(onTemplate, exclusiveKey, "rack", selectorKey, "true")),
	},
	"exclusive placement of pods has no effect": {
		change: annotated(onPod, exclusiveKey, "rack", selectorKey, "true"),
		want: []string{
			"spec.replicatedJobs[0].template.spec.template.metadata.annotations[" + exclusiveKey + "]: has no effect on pods; set it on the JobSet or on the template of the replicatedJob",
			"spec.replicatedJobs[0].template.spec.template.metadata.annotations[" + selectorKey + "]: has no effect on pods; set it on the JobSet or on the template of the replicatedJob",
		},
	},
	"an empty topology has no effect": {
		change: annotated(onSet, exclusiveKey, ""),
		want:   []string{"metadata.annotations[" + exclusiveKey + "]: has no effect while empty; set it to the node label that names the topology domain"},
	},
	"a node selector has no effect without a topology at its level": {
		change: all(annotated(onSet, exclusiveKey, "rack"), annotated(onTemplate, selectorKey, "true")),
		want:   []string{"spec.replicatedJobs[0].template.metadata.annotations[" + selectorKey + "]: has no effect without " + exclusiveKey + " beside it"},
	},
	"NonIndexed Jobs placed exclusively through the set": {
		change: all(nonIndexed, annotated(onSet, exclusiveKey, "rack")),
		want:   []string{"spec.replicatedJobs[0].template.spec.completionMode: NonIndexed pods cannot be placed exclusively and would never run; use Indexed"},
	},
	"NonIndexed Jobs placed exclusively through their template": {
		change: all(nonIndexed, annotated(onTemplate, exclusiveKey, "rack")),
		want:   []string{"spec.replicatedJobs[0].template.spec.completionMode: NonIndexed pods cannot be placed exclusively and would never run; use Indexed"},
	},
	"NonIndexed Jobs placed through node selectors need no leader": {
		change: all(nonIndexed, annotated(onTemplate, exclusiveKey, "rack", selectorKey, "true")),
	},
	"NonIndexed Jobs with a topology of their own and the node selectors of the set": {
		change: all(nonIndexed, annotated(onSet, exclusiveKey, "rack", selectorKey, "true"), annotated(onTemplate, exclusiveKey, "zone")),
	},
	"a pod name of 57 characters": {change: named(45)},
	"a pod name of 58 characters": {
		change: named(46),
		want:   []string{`spec.replicatedJobs[0].name: pod names like "` + strings.Repeat("a", 46) + `-w-0-0-xxxxx" have 58 of at most 63 characters; use shorter names`},
	},
	"a Job name of 57 characters, pod names unknown": {change: named(53, noCompletions)},
	"a Job name of 58 characters, pod names unknown": {
		change: named(54, noCompletions),
		want:   []string{`spec.replicatedJobs[0].name: Job names like "` + strings.Repeat("a", 54) + `-w-0" have 58 of at most 63 characters; use shorter names`},
	},
	"a coordinator name of 59 characters": {
		change: named(26, func(js *api.JobSet) { js.Spec.Coordinator = &api.Coordinator{ReplicatedJob: "w"} }),
		want: []string{`spec.coordinator: coordinator names like "` + strings.Repeat("a", 26) + "-w-0-0." + strings.Repeat("a", 26) +
			`" have 59 of at most 63 characters; use shorter names`},
	},
	"a claim name of 58 characters": {
		change: func(js *api.JobSet) {
			js.Spec.VolumeClaimPolicies = []api.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("d", 52)}}}}}
		},
		want: []string{`spec.volumeClaimPolicies[0].templates[0].metadata.name: claim names like "` + strings.Repeat("d", 52) +
			`-train" have 58 of at most 63 characters; use shorter names`},
	},
	"the deprecated startup policy": {
		change: func(js *api.JobSet) { js.Spec.StartupPolicy.StartupPolicyOrder = api.InOrder },
		want:   []string{"spec.startupPolicy: deprecated; use dependsOn of the replicatedJobs"},
	},
	"negative maxRestarts": {
		change: failurePolicy(api.RestartStrategyRecreate, -2),
		want:   []string{"spec.failurePolicy.maxRestarts: -2 acts like 0; use 0 for no restarts"},
	},
	"retries of pods below a failure policy": {
		change: all(backoff(3), failurePolicy(api.RestartStrategyRecreate, 1)),
		want:   []string{"spec.replicatedJobs[0].template.spec.backoffLimit: the failure policy acts only after 3 retries of pods; use 0 to act on the first failure"},
	},
	"no retries of pods below a failure policy":              {change: all(backoff(0), failurePolicy(api.RestartStrategyRecreate, 1))},
	"retries left to the Job API":                            {change: failurePolicy(api.RestartStrategyRecreate, 1)},
	"retries of pods without a failure policy":               {change: backoff(3)},
	"retries that the restart strategy InPlaceRestart needs": {change: all(backoff(3), failurePolicy(api.RestartStrategyInPlaceRestart, 1))},
}

func TestWarningsOnCreate(t *testing.T) {
	main, _ := strategies(gates.Gates{})
	for name, tc := range warningCases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, main.WarningsOnCreate(inNamespace(), train(tc.change))); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsOnUpdateAreThoseOfTheChange(t *testing.T) {
	main, _ := strategies(gates.Gates{})
	warned := 0
	for name, tc := range warningCases {
		t.Run(name, func(t *testing.T) {
			prev, next := train(), train(tc.change)
			got := main.WarningsOnUpdate(inNamespace(), next, prev)
			warned += len(got)
			if diff := cmp.Diff(len(tc.want), len(got)); diff != "" {
				t.Errorf("number of warnings (-want +got):\n%s", diff)
			}
			next.Spec.Suspend = ptr.To(true)
			if again := main.WarningsOnUpdate(inNamespace(), next, train(tc.change)); len(again) > 0 {
				t.Errorf("told again: %q", again)
			}
		})
	}
	if warned == 0 {
		t.Error("no update warns")
	}
}
