// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

const ignored = ": ignored, because the feature gate ExclusivePlacement is off: turn it on in both programs with --feature-gates=ExclusivePlacement=true, " +
	"or label the nodes and add the annotation " + selectorKey

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

func every(changes ...func(*api.JobSet)) func(*api.JobSet) {
	return func(js *api.JobSet) {
		for _, f := range changes {
			f(js)
		}
	}
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
		every(more...)(js)
	}
}

func replicatedJobs(n int) func(*api.JobSet) {
	return func(js *api.JobSet) {
		for i := len(js.Spec.ReplicatedJobs); i < n; i++ {
			rj := *js.Spec.ReplicatedJobs[0].DeepCopy()
			rj.Name += strconv.Itoa(i)
			js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
		}
	}
}

func noCompletions(js *api.JobSet) {
	js.Spec.ReplicatedJobs[0].Template.Spec.Completions, js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism = nil, nil
}

var warningCases = map[string]struct {
	change func(*api.JobSet)
	want   []string
}{
	"nothing to warn of": {change: func(*api.JobSet) {}},
	"no spec": {
		change: func(js *api.JobSet) { js.Spec = api.JobSetSpec{} },
		want:   []string{"spec.replicatedJobs: no Jobs are created, and the set never completes, because it has no replicatedJobs; they cannot be added later"},
	},
	"as many replicatedJobs as a queue admits": {change: every(queued, replicatedJobs(18))},
	"more replicatedJobs than a queue admits": {
		change: every(queued, replicatedJobs(19)),
		want:   []string{"spec.replicatedJobs: Kueue admits at most 18 replicatedJobs, and there are 19: the queue team never admits the set"},
	},
	"many replicatedJobs without a queue": {change: replicatedJobs(19)},
	"exclusive placement through node selectors": {
		change: annotated(onSet, exclusiveKey, "rack", selectorKey, "true"),
	},
	"exclusive placement of one replicatedJob through node selectors": {
		change: annotated(onTemplate, exclusiveKey, "rack", selectorKey, "true"),
	},
	"exclusive placement of the set": {
		change: annotated(onSet, exclusiveKey, "rack"),
		want:   []string{"metadata.annotations[" + exclusiveKey + "]" + ignored},
	},
	"exclusive placement of one replicatedJob": {
		change: annotated(onTemplate, exclusiveKey, "rack"),
		want:   []string{"spec.replicatedJobs[0].template.metadata.annotations[" + exclusiveKey + "]" + ignored},
	},
	"exclusive placement of the set, every replicatedJob through node selectors": {
		change: every(annotated(onSet, exclusiveKey, "rack"), annotated(onTemplate, exclusiveKey, "rack", selectorKey, "true")),
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
		want:   []string{"metadata.annotations[" + exclusiveKey + "]: has no effect while it is empty"},
	},
	"a node selector has no effect without a topology at its level": {
		change: every(annotated(onSet, exclusiveKey, "rack"), annotated(onTemplate, selectorKey, "true")),
		want: []string{
			"spec.replicatedJobs[0].template.metadata.annotations[" + selectorKey + "]: has no effect without the annotation " + exclusiveKey,
			"metadata.annotations[" + exclusiveKey + "]" + ignored,
		},
	},
	"no image, no volume": {
		change: func(js *api.JobSet) {
			pod := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
			pod.Containers[0].Image = ""
			pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		},
		want: []string{
			"spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: not set; Jobs are rejected unless an admission webhook adds it",
			`spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts[0].name: the pod has no volume "data"; Jobs are rejected unless an admission webhook adds it`,
		},
	},
	"a volume of a claim template": {
		change: func(js *api.JobSet) {
			js.Spec.VolumeClaimPolicies = []api.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		},
	},
	"a template that no Job can have, in a set of another controller": {
		change: every(backoff(-1), func(js *api.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }),
		want:   []string{"spec.replicatedJobs[0].template.spec.backoffLimit: Invalid value: -1: must be 0 or more"},
	},
	"a pod name of 57 characters": {change: named(45)},
	"a pod name of 58 characters": {
		change: named(46),
		want:   []string{`spec.replicatedJobs[0].name: pod names such as "` + strings.Repeat("a", 46) + `-w-0-0-xxxxx" have 58 of at most 63 characters; use shorter names`},
	},
	"a Job name of 57 characters, pod names unknown": {change: named(53, noCompletions)},
	"a Job name of 58 characters, pod names unknown": {
		change: named(54, noCompletions),
		want:   []string{`spec.replicatedJobs[0].name: Job names such as "` + strings.Repeat("a", 54) + `-w-0" have 58 of at most 63 characters; use shorter names`},
	},
	"a coordinator name of 59 characters": {
		change: named(26, func(js *api.JobSet) { js.Spec.Coordinator = &api.Coordinator{ReplicatedJob: "w"} }),
		want: []string{`spec.coordinator: coordinator names such as "` + strings.Repeat("a", 26) + "-w-0-0." + strings.Repeat("a", 26) +
			`" have 59 of at most 63 characters; use shorter names`},
	},
	"a claim name of 58 characters": {
		change: func(js *api.JobSet) {
			js.Spec.VolumeClaimPolicies = []api.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("d", 52)}}}}}
		},
		want: []string{`spec.volumeClaimPolicies[0].templates[0].metadata.name: claim names such as "` + strings.Repeat("d", 52) +
			`-train" have 58 of at most 63 characters; use shorter names`},
	},
	"the deprecated startup policy": {
		change: func(js *api.JobSet) { js.Spec.StartupPolicy.StartupPolicyOrder = api.InOrder },
		want:   []string{"spec.startupPolicy: deprecated; use dependsOn of the replicatedJobs"},
	},
	"negative maxRestarts": {
		change: failurePolicy(api.RestartStrategyRecreate, -2),
		want:   []string{"spec.failurePolicy.maxRestarts: -2 means the same as 0; use 0 for no restarts"},
	},
	"retries of pods below a failure policy": {
		change: every(backoff(3), failurePolicy(api.RestartStrategyRecreate, 1)),
		want:   []string{"spec.replicatedJobs[0].template.spec.backoffLimit: the failure policy takes effect only after 3 retries of pods; use 0 to act on the first failure"},
	},
	"nodes to avoid without restarts": {
		change: annotated(onSet, api.AvoidFailedNodesKey, "1h"),
		want:   []string{"metadata.annotations[jobset-apiserver.io/avoid-failed-nodes]: has an effect only when the set is retried; add a failurePolicy that restarts it"},
	},
	"nodes to avoid when pods stay on their nodes": {
		change: every(failurePolicy(api.RestartStrategyInPlaceRestart, 1), restartRules, annotated(onSet, api.AvoidFailedNodesKey, "1h")),
		want:   []string{"metadata.annotations[jobset-apiserver.io/avoid-failed-nodes]: has no effect on restarts in place, because pods stay on their nodes"},
	},
	"nodes to avoid in restarts":                             {change: every(failurePolicy(api.RestartStrategyRecreate, 1), annotated(onSet, api.AvoidFailedNodesKey, "1h"))},
	"no nodes to avoid":                                      {change: annotated(onSet, api.AvoidFailedNodesKey, "0s")},
	"no retries of pods below a failure policy":              {change: every(backoff(0), failurePolicy(api.RestartStrategyRecreate, 1))},
	"retries left to the Job API":                            {change: failurePolicy(api.RestartStrategyRecreate, 1)},
	"retries of pods without a failure policy":               {change: backoff(3)},
	"retries that the restart strategy InPlaceRestart needs": {change: every(backoff(3), failurePolicy(api.RestartStrategyInPlaceRestart, 1), restartRules)},
	"restarts in place without rules": {
		change: failurePolicy(api.RestartStrategyInPlaceRestart, 1),
		want:   []string{"spec.replicatedJobs[0].template.spec.template.spec.containers: without restartPolicyRules, pods that fail are recreated and do not restart in place"},
	},
}

// restartRules gives the containers of all pods rules by which they restart in place.
func restartRules(js *api.JobSet) {
	for i := range js.Spec.ReplicatedJobs {
		containers := js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers
		for j := range containers {
			containers[j].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
		}
	}
}

func TestWarningsOnCreate(t *testing.T) {
	main, _ := strategies(gates.Gates{})
	for name, tc := range warningCases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, main.WarningsOnCreate(inNamespace(), plain(tc.change))); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWarningsOnExclusivePlacement shows what remains to be said about exclusive placement while the feature is on.
func TestWarningsOnExclusivePlacement(t *testing.T) {
	const levelsKey = "jobset-apiserver.io/placement-levels"
	const set, template = "metadata.annotations", "spec.replicatedJobs[0].template.metadata.annotations"
	const noKey = " is not the key of a label, so that no node has it; use a key such as topology.kubernetes.io/zone"
	main, _ := strategies(gates.Gates{ExclusivePlacement: true})
	for name, tc := range map[string]struct {
		change func(*api.JobSet)
		want   []string
	}{
		"of the set":                      {change: annotated(onSet, exclusiveKey, "example.com/rack")},
		"of one replicatedJob":            {change: annotated(onTemplate, exclusiveKey, "rack")},
		"through node selectors":          {change: annotated(onSet, exclusiveKey, "any text", selectorKey, "true")},
		"by what is no label":             {change: annotated(onSet, exclusiveKey, "my rack"), want: []string{set + "[" + exclusiveKey + `]: "my rack"` + noKey}},
		"of one by what is no label":      {change: annotated(onTemplate, exclusiveKey, "rack/"), want: []string{template + "[" + exclusiveKey + `]: "rack/"` + noKey}},
		"by a very long text":             {change: annotated(onSet, exclusiveKey, strings.Repeat("x", 1000)), want: []string{set + "[" + exclusiveKey + `]: "` + strings.Repeat("x", 61) + `..."` + noKey}},
		"by levels":                       {change: annotated(onSet, exclusiveKey, "rack", levelsKey, "zone, block,rack")},
		"by the most levels":              {change: annotated(onSet, exclusiveKey, "rack", levelsKey, "a,b,c,,d,")},
		"by too many levels":              {change: annotated(onSet, exclusiveKey, "rack", levelsKey, "a,b,c,d,e,f g"), want: []string{set + "[" + levelsKey + "]: only the first 4 labels have an effect"}},
		"by a level that is no label":     {change: annotated(onSet, exclusiveKey, "rack", levelsKey, "zone;block"), want: []string{set + "[" + levelsKey + `]: "zone;block"` + noKey}},
		"levels alone":                    {change: annotated(onSet, levelsKey, "zone"), want: []string{set + "[" + levelsKey + "]: has no effect without the annotation " + exclusiveKey}},
		"levels through node selectors":   {change: annotated(onSet, exclusiveKey, "rack", selectorKey, "", levelsKey, "zone"), want: []string{set + "[" + levelsKey + "]: has no effect without the annotation " + exclusiveKey}},
		"levels of a replicatedJob":       {change: annotated(onTemplate, exclusiveKey, "rack", levelsKey, "zone"), want: []string{template + "[" + levelsKey + "]: has no effect on a replicatedJob; set it on the JobSet"}},
		"levels of one of replicatedJobs": {change: every(annotated(onSet, levelsKey, "zone"), annotated(onTemplate, exclusiveKey, "rack"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, main.WarningsOnCreate(inNamespace(), plain(tc.change))); diff != "" {
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
			prev, next := plain(), plain(tc.change)
			got := main.WarningsOnUpdate(inNamespace(), next, prev)
			warned += len(got)
			if diff := cmp.Diff(len(tc.want), len(got)); diff != "" {
				t.Errorf("number of warnings (-want +got):\n%s", diff)
			}
			next.Spec.Suspend = ptr.To(true)
			if again := main.WarningsOnUpdate(inNamespace(), next, plain(tc.change)); len(again) > 0 {
				t.Errorf("told again: %q", again)
			}
		})
	}
	if warned == 0 {
		t.Error("no update warns")
	}
}
