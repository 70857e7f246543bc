// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// nearLimit is how many more digits of the index of a group the name of a set should leave room for.
const nearLimit = 1

var (
	templatePath    = field.NewPath("spec", "leaderWorkerTemplate")
	annotationsPath = field.NewPath("metadata", "annotations")
	retentions      = []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
)

// Warnings lists what is valid, but probably not what the user wants.
func Warnings(lws *leaderworkerset.LeaderWorkerSet) []string {
	w := &warner{}
	w.name(lws)
	w.restarts(lws)
	w.claims(&lws.Spec.LeaderWorkerTemplate)
	w.templates(&lws.Spec.LeaderWorkerTemplate, templatePath)
	return w.Texts()
}

// TemplateWarnings lists what is valid, but probably not what the user wants, of templates of pods at a path.
func TemplateWarnings(template *leaderworkerset.LeaderWorkerTemplate, path *field.Path) []string {
	w := &warner{}
	w.templates(template, path)
	return w.Texts()
}

// templates warns of pods that the StatefulSets cannot create, unless a webhook completes them. Upstream accepts them, too.
func (w *warner) templates(template *leaderworkerset.LeaderWorkerTemplate, path *field.Path) {
	claims := map[string]struct{}{}
	for i := range template.VolumeClaimTemplates {
		claims[template.VolumeClaimTemplates[i].Name] = struct{}{}
	}
	pods := func(pods *corev1.PodTemplateSpec, path *field.Path) {
		podtemplate.MissingInPods(pods, claims, path, w.Add)
		for _, err := range podtemplate.ValidatePods(pods, path) {
			w.Append(err.Error())
		}
	}
	if template.LeaderTemplate != nil {
		pods(template.LeaderTemplate, path.Child("leaderTemplate"))
	}
	pods(&template.WorkerTemplate, path.Child("workerTemplate"))
}

// warningsOnUpdate lists the warnings that a change introduces, and what is wrong with the change itself.
func warningsOnUpdate(next, prev *leaderworkerset.LeaderWorkerSet) []string {
	w := &warner{}
	if !equality.Semantic.DeepEqual(next.Spec.LeaderWorkerTemplate.VolumeClaimTemplates, prev.Spec.LeaderWorkerTemplate.VolumeClaimTemplates) {
		w.Add(templatePath.Child("volumeClaimTemplates"),
			"changed, but StatefulSets do not allow that: no further change of this set is applied until it is changed back; delete the set and "+
				"create it again to change claims")
	}
	const key = leaderworkersetv1.ExclusiveKeyAnnotationKey
	if next.Annotations[key] != prev.Annotations[key] || validation.HasAnnotation(&next.ObjectMeta, key) != validation.HasAnnotation(
		&prev.ObjectMeta, key) {
		w.Add(annotationsPath.Key(key), "changed: the groups are recreated at once, from the partition up, without being reported as an update")
	}
	return append(strategy.IntroducedWarnings(Warnings(next), Warnings(prev)), w.Texts()...)
}

type warner struct{ strategy.Warnings }

// name warns of a name that leaves no room for the index of a group.
func (w *warner) name(lws *leaderworkerset.LeaderWorkerSet) {
	budget, path := validation.Budget(lws), field.NewPath("metadata", "name")
	switch n := len(lws.Name); {
	case n > budget.Limit:
		w.Add(path, "has %d characters; with this size and number of groups, pods can be created only with at most %d, because their label "+
			"controller-revision-hash holds at most 63, and would have %d", n, budget.Limit, len(budget.Label))
	case n > budget.Safe:
		w.Add(path, "has %d characters; use at most %d. The label controller-revision-hash of %s holds the name and a hash in at most 63 "+
			"characters; about 3 of 4 hashes have 10 characters, and would make it %d long, so that pods cannot be created. Each change "+
			"of the template brings another hash", n,
			budget.Safe, budget.Pods(), len(budget.Label))
	case n > budget.Safe-nearLimit && budget.Indexed:
		w.Add(path, "has %d of at most %d characters; with more groups, so that indexes have one more digit, pods cannot be created; use a "+
			"shorter name", n, budget.Safe)
	}
}

// restarts warns of settings about restarts that have no effect.
func (w *warner) restarts(lws *leaderworkerset.LeaderWorkerSet) {
	policy := lws.Spec.LeaderWorkerTemplate.RestartPolicy
	if policy == leaderworkerset.RestartPolicyNone && lws.Spec.GroupRestartBackoff != nil {
		w.Add(field.NewPath("spec", "groupRestartBackoff"), "has no effect, because restartPolicy is None: groups are not recreated")
	}
	const key = leaderworkersetv1.RecreateGroupAfterStartAnnotationKey
	if validation.HasAnnotation(&lws.ObjectMeta, key) && policy == leaderworkerset.RestartPolicyNone {
		w.Add(annotationsPath.Key(key), "has no effect, because restartPolicy is None: groups are not recreated")
	}
}

// claims warns of claims that are deleted more often than users expect, and of policies that StatefulSets refuse.
func (w *warner) claims(template *leaderworkerset.LeaderWorkerTemplate) {
	policy, path := template.PersistentVolumeClaimRetentionPolicy, templatePath.Child("persistentVolumeClaimRetentionPolicy")
	if policy == nil {
		return
	}
	for _, p := range []struct {
		name  string
		value appsv1.PersistentVolumeClaimRetentionPolicyType
	}{{"whenDeleted", policy.WhenDeleted}, {"whenScaled", policy.WhenScaled}} {
		if p.value != "" && !slices.Contains(retentions, p.value) {
			w.Add(path.Child(p.name), "%q is unknown, and StatefulSets with it are rejected; known values are Delete, Retain", p.value)
		}
	}
	recreated := template.RestartPolicy != leaderworkerset.RestartPolicyNone
	if policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType && len(template.VolumeClaimTemplates) > 0 &&
		ptr.Deref(template.GroupSize, 1) > 1 {
		when := "updated"
		if recreated {
			when = "recreated or updated"
		}
		w.Add(path.Child("whenDeleted"), "Delete deletes the claims of the workers of a group each time the group is %s, because their "+
			"StatefulSet is deleted then; use Retain to keep their data", when)
	}
}
