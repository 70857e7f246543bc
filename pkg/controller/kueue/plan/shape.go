// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

const (
	// MaxPodSets is the largest number of pod sets of a Workload.
	MaxPodSets = 18
	// MainPodSet is the pod set of Jobs, and of everything if the sequence has no roles or too many.
	MainPodSet = "main"
)

// role is a kind of pods of a step: those of its Job, or of one replicatedJob of its JobSet.
type role struct {
	name     string
	count    int64
	template *corev1.PodTemplateSpec
}

// rolesOf returns the roles of a step. Pods of a step that is a container have what the steps share, too.
func rolesOf(spec *batchv1alpha1.SequentialJobSpec, step helper.Step) (roles []role) {
	switch {
	case step.JobSet != nil:
		for i := range step.JobSet.Spec.ReplicatedJobs {
			job := &step.JobSet.Spec.ReplicatedJobs[i]
			count := int64(ptr.Deref(job.Replicas, 1)) * podsOf(&job.Template.Spec)
			roles = append(roles, role{job.Name, count, &job.Template.Spec.Template})
		}
		return roles
	case step.Job != nil:
		return []role{{MainPodSet, podsOf(&step.Job.Spec), &step.Job.Spec.Template}}
	}
	template := ptr.Deref(spec.Template, corev1.PodTemplateSpec{})
	template.Spec.Containers = []corev1.Container{*step.Container}
	return []role{{MainPodSet, 1, &template}}
}

// podsOf returns how many pods of a Job run at the same time.
func podsOf(job *batchv1.JobSpec) int64 {
	pods := ptr.Deref(job.Parallelism, 1)
	return int64(min(pods, ptr.Deref(job.Completions, pods)))
}

// Shape returns the pod sets that cover each of the steps which have not ended, of which one runs at a time. If all of them have a single
// role there is one pod set: the largest number of pods, each with the largest requests. Otherwise each role has its own, unless
// a Workload cannot have so many.
func Shape(sj *batchv1alpha1.SequentialJob) []PodSet { return shapeFrom(sj, firstStep(sj)) }

// shapeFrom returns the pod sets that cover the steps from an index on.
func shapeFrom(sj *batchv1alpha1.SequentialJob, first int) []PodSet {
	var steps [][]role
	single, names := true, []string{}
	for _, step := range helper.Steps(&sj.Spec)[min(first, helper.StepCount(&sj.Spec)):] {
		roles := rolesOf(&sj.Spec, step)
		single = single && len(roles) == 1
		for _, r := range roles {
			if !slices.Contains(names, r.name) {
				names = append(names, r.name)
			}
		}
		steps = append(steps, roles)
	}
	if single || len(names) > MaxPodSets {
		return []PodSet{podSet(MainPodSet, steps, func(role) bool { return true })}
	}
	var sets []PodSet
	for _, name := range names {
		sets = append(sets, podSet(name, steps, func(r role) bool { return r.name == name }))
	}
	return sets
}

// PodSetOf returns the name of the pod set that the pods of a role of a sequence belong to.
func PodSetOf(w *Workload, role string) string {
	if slices.ContainsFunc(w.Spec.PodSets, func(set PodSet) bool { return set.Name == role }) {
		return role
	}
	return MainPodSet
}

// firstStep returns the index of the first step that has not ended.
func firstStep(sj *batchv1alpha1.SequentialJob) int {
	return min(max(int(ptr.Deref(sj.Status.Progress.CurrentIndex, 0)), 0), helper.StepCount(&sj.Spec))
}

// podSet returns the pod set that covers the pods of some roles of every step. Its template names what is valid for all of them.
func podSet(name string, steps [][]role, of func(role) bool) PodSet {
	set := PodSet{Name: name}
	requests := corev1.ResourceList{}
	var most int64
	var selectors []map[string]string
	var tolerations [][]corev1.Toleration
	for _, roles := range steps {
		var count int64
		for _, r := range roles {
			if !of(r) {
				continue
			}
			count += r.count
			raise(requests, podRequests(&r.template.Spec))
			selectors = append(selectors, r.template.Spec.NodeSelector)
			tolerations = append(tolerations, r.template.Spec.Tolerations)
		}
		most = max(most, count)
	}
	set.Count = int32(min(most, math.MaxInt32))
	container := corev1.Container{Name: MainPodSet}
	if len(requests) > 0 {
		container.Resources.Requests = requests
	}
	set.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever,
		NodeSelector: agreed(selectors), Tolerations: common(tolerations),
	}
	return set
}

// agreed returns the labels of nodes that some selectors ask for and no selector contradicts.
func agreed(selectors []map[string]string) map[string]string {
	var all map[string]string
	contradicted := map[string]bool{}
	for _, selector := range selectors {
		for key, value := range selector {
			if all == nil {
				all = map[string]string{}
			}
			if known, found := all[key]; found && known != value {
				contradicted[key] = true
			}
			all[key] = value
		}
	}
	for key := range contradicted {
		delete(all, key)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// common returns the tolerations that all have.
func common(all [][]corev1.Toleration) (shared []corev1.Toleration) {
	if len(all) == 0 {
		return nil
	}
	for _, t := range all[0] {
		everywhere := !slices.ContainsFunc(all[1:], func(others []corev1.Toleration) bool { return !tolerates(others, t) })
		if everywhere && !tolerates(shared, t) {
			shared = append(shared, t)
		}
	}
	return shared
}

func tolerates(all []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(all, func(known corev1.Toleration) bool { return equality.Semantic.DeepEqual(known, t) })
}

// equalShape returns whether pod sets ask for the same.
func equalShape(a, b []PodSet) bool {
	return slices.EqualFunc(a, b, func(x, y PodSet) bool {
		xs, ys := &x.Template.Spec, &y.Template.Spec
		return x.Name == y.Name && x.Count == y.Count && equality.Semantic.DeepEqual(podRequests(xs), podRequests(ys)) &&
			equality.Semantic.DeepEqual(xs.NodeSelector, ys.NodeSelector) && equality.Semantic.DeepEqual(xs.Tolerations, ys.Tolerations)
	})
}

// fits returns whether reserved pod sets have room for all that is asked for now.
func fits(reserved, asked []PodSet) bool {
	room := map[string]*PodSet{}
	for i := range reserved {
		room[reserved[i].Name] = &reserved[i]
	}
	for i := range asked {
		set := room[asked[i].Name]
		if set == nil || set.Count < asked[i].Count || !covers(podRequests(&set.Template.Spec), podRequests(&asked[i].Template.Spec)) {
			return false
		}
	}
	return true
}
