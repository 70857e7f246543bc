// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// nearLimit is how many characters a generated name may be away from its limit to be warned about.
const nearLimit = 5

// Warnings lists what is valid, but probably not what the user wants.
func Warnings(js *jobset.JobSet, gates gates.Gates) []string {
	w := &warner{gates: gates}
	path := field.NewPath("spec")
	w.empty(&js.Spec, path)
	w.exclusivePlacement(js, path)
	w.templates(js, path)
	w.names(js, path)
	w.policies(&js.Spec, path)
	w.queue(js, path)
	w.avoidedNodes(js)
	return w.Texts()
}

type warner struct {
	strategy.Warnings
	gates gates.Gates
}

// empty warns of a set that never does anything, and never ends.
func (w *warner) empty(spec *jobset.JobSetSpec, path *field.Path) {
	if len(spec.ReplicatedJobs) == 0 {
		w.Add(path.Child("replicatedJobs"), "no Jobs are created, and the set never completes, because it has no replicatedJobs; they cannot "+
			"be added later")
	}
}

// maxPodSets is how many pod sets a Workload of Kueue has at most. Each replicatedJob is one.
const maxPodSets = 18

// queue warns of a set that its queue cannot admit.
func (w *warner) queue(js *jobset.JobSet, path *field.Path) {
	if queue := js.Labels[jobsetv1alpha2.QueueNameKey]; queue != "" && len(js.Spec.ReplicatedJobs) > maxPodSets {
		w.Add(path.Child("replicatedJobs"), "Kueue admits at most %d replicatedJobs, and there are %d: the queue %s never admits the set",
			maxPodSets, len(js.Spec.ReplicatedJobs), queue)
	}
}

// templates warns of Jobs that are rejected unless a webhook completes them. What no Job can have is an error, except in sets of another
// controller, which may make something else of the templates.
func (w *warner) templates(js *jobset.JobSet, path *field.Path) {
	claims := map[string]struct{}{}
	for _, policy := range js.Spec.VolumeClaimPolicies {
		for i := range policy.Templates {
			claims[policy.Templates[i].Name] = struct{}{}
		}
	}
	other := validation.ManagedByOther(&js.Spec)
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("template")
		podtemplate.Missing(&rj.Template, claims, p, w.Add)
		if !other {
			continue
		}
		for _, err := range podtemplate.ValidateJob(&rj.Template, p) {
			w.Append(err.Error())
		}
	}
}

// names warns of generated names that a few more replicas, or a longer name of the next run, would make too long.
func (w *warner) names(js *jobset.JobSet, path *field.Path) {
	near := func(p *field.Path, what, name string) {
		if n := len(name); n >= validation.MaxNameLength-nearLimit {
			w.Add(p, "%s such as %q have %d of at most %d characters; use shorter names", what, name, n, validation.MaxNameLength)
		}
	}
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("name")
		if pod, ok := validation.LongestPodName(js.Name, rj); ok {
			near(p, "pod names", pod)
		} else {
			near(p, "Job names", validation.LongestJobName(js.Name, rj))
		}
	}
	if js.Spec.Coordinator != nil {
		near(path.Child("coordinator"), "coordinator names", validation.CoordinatorName(js))
	}
	for i := range js.Spec.VolumeClaimPolicies {
		for j := range js.Spec.VolumeClaimPolicies[i].Templates {
			p := path.Child("volumeClaimPolicies").Index(i).Child("templates").Index(j).Child("metadata", "name")
			near(p, "claim names", validation.ClaimName(js.Name, js.Spec.VolumeClaimPolicies[i].Templates[j].Name))
		}
	}
}

// policies warns of policies that do not act as their reader may expect.
func (w *warner) policies(spec *jobset.JobSetSpec, path *field.Path) {
	if spec.StartupPolicy != nil && spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder {
		w.Add(path.Child("startupPolicy"), "deprecated; use dependsOn of the replicatedJobs")
	}
	if spec.FailurePolicy == nil {
		return
	}
	if n := spec.FailurePolicy.MaxRestarts; n < 0 {
		w.Add(path.Child("failurePolicy", "maxRestarts"), "%d means the same as 0; use 0 for no restarts", n)
	}
	if validation.UsesInPlaceRestart(spec) {
		w.restartRules(spec, path)
		return // this strategy asks for the highest backoffLimit
	}
	for i := range spec.ReplicatedJobs {
		if limit := ptr.Deref(spec.ReplicatedJobs[i].Template.Spec.BackoffLimit, 0); limit > 0 {
			w.Add(path.Child("replicatedJobs").Index(i).Child("template", "spec", "backoffLimit"),
				"the failure policy takes effect only after %d retries of pods; use 0 to act on the first failure", limit)
		}
	}
}

// restartRules warns of pods whose containers nothing starts again: if a container fails, its pod fails and is recreated.
func (w *warner) restartRules(spec *jobset.JobSetSpec, path *field.Path) {
	ruled := func(c corev1.Container) bool { return len(c.RestartPolicyRules) > 0 }
	for i := range spec.ReplicatedJobs {
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		if len(pod.Containers) > 0 && !slices.ContainsFunc(pod.Containers, ruled) {
			w.Add(path.Child("replicatedJobs").Index(i).Child("template", "spec", "template", "spec", "containers"),
				"without restartPolicyRules, pods that fail are recreated and do not restart in place")
		}
	}
}

// avoidedNodes warns of sets that are to avoid nodes in later attempts, and whose failures lead to none, or to none on other nodes.
func (w *warner) avoidedNodes(js *jobset.JobSet) {
	path := field.NewPath("metadata", "annotations").Key(jobset.AvoidFailedNodesKey)
	switch d, err := jobset.AvoidTime(js.Annotations[jobset.AvoidFailedNodesKey]); {
	case err != nil || d == 0:
	case js.Spec.FailurePolicy == nil:
		w.Add(path, "has an effect only when the set is retried; add a failurePolicy that restarts it")
	case validation.UsesInPlaceRestart(&js.Spec):
		w.Add(path, "has no effect on restarts in place, because pods stay on their nodes")
	}
}
