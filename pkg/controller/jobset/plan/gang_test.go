// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// hash is the beginning of `printf JobSet/ns/js | sha1sum`.
const hash = "277bbf9c41"

// short leaves the hash out of names.
func short(text string) string { return strings.ReplaceAll(text, "-"+hash, "") }

func scheduling(change ...func(*jobsetv1alpha2.JobSetSchedulingConfiguration)) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Scheduling = &jobsetv1alpha2.JobSetSchedulingConfiguration{}
		for _, f := range change {
			f(js.Spec.Scheduling)
		}
	}
}

func entries(list ...jobsetv1alpha2.ReplicatedJobScheduling) func(*jobsetv1alpha2.JobSetSchedulingConfiguration) {
	return func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) { s.ReplicatedJobs = list }
}

func entry(perJob bool, targets ...string) jobsetv1alpha2.ReplicatedJobScheduling {
	e := jobsetv1alpha2.ReplicatedJobScheduling{TargetReplicatedJobs: targets}
	if perJob {
		e.Job = &jobsetv1alpha2.JobScheduling{}
	}
	return e
}

// existing are the objects of the groups of a set, as the API has them; a change gets each of them with its kind and short name.
func existing(js *jobsetv1alpha2.JobSet, change func(name string, object *unstructured.Unstructured)) []*unstructured.Unstructured {
	objects := gang.Objects(gang.V1beta1, js)
	for _, object := range objects {
		name := object.GetKind() + "/" + short(object.GetName())
		object.SetUID(types.UID("uid-" + name))
		if change != nil {
			change(name, object)
		}
	}
	return objects
}

// inGroup puts a Job into a group.
func inGroup(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name + "-" + hash)}
	}
}

// TestGroups shows for a set of two Jobs w and one Job other, which groups and Jobs a decision changes.
func TestGroups(t *testing.T) {
	apart := scheduling(entries(entry(true, "w"), entry(false, "other")))
	deleting := func(only string) func(string, *unstructured.Unstructured) {
		return func(name string, object *unstructured.Unstructured) {
			if name == only {
				object.SetDeletionTimestamp(&before)
			}
		}
	}
	none := func(string, *unstructured.Unstructured) {}
	class := func(value string) func(string, *unstructured.Unstructured) {
		return func(name string, object *unstructured.Unstructured) {
			switch {
			case name != "PodGroup/js":
			case value == "":
				unstructured.RemoveNestedField(object.Object, "spec", "priorityClassName")
			default:
				_ = unstructured.SetNestedField(object.Object, value, "spec", "priorityClassName")
			}
		}
	}
	prioritized := func(js *jobsetv1alpha2.JobSet) {
		for i := range js.Spec.ReplicatedJobs {
			js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.PriorityClassName = "high"
		}
	}
	suspendedJobs := []*batchv1.Job{jobNamed("w", 0, jobIsSuspended, inGroup("js")), jobNamed("w", 1, jobIsSuspended, inGroup("js")), jobNamed("other", 0, jobIsSuspended, inGroup("js"))}
	oneRuns := append(slices.Clone(suspendedJobs[:2]), jobNamed("other", 0, inGroup("js")))
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		jobs []*batchv1.Job
		// have changes the groups that exist; nil if none does.
		have func(string, *unstructured.Unstructured)
		off  bool
		// groups are the groups that are created, and after a minus sign those that are deleted; creates are Jobs, each with
		// its template and group.
		groups, creates, resumes, deletes string
	}{
		"no groups are made":      {off: true, set: []func(*jobsetv1alpha2.JobSet){scheduling()}, creates: "w-0, w-1, other-0"},
		"the set asks for none":   {creates: "w-0, w-1, other-0"},
		"groups come before Jobs": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: "Workload/js PodGroup/js"},
		"Jobs are in their group": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, have: none, creates: "w-0 js js, w-1 js js, other-0 js js"},
		"each Job has a group":    {set: []func(*jobsetv1alpha2.JobSet){apart}, have: none, creates: "w-0 w-0 js-w-0, w-1 w-1 js-w-1, other-0 other js-other"},
		"a group lacks":           {set: []func(*jobsetv1alpha2.JobSet){apart}, have: deleting("PodGroup/js-w-1"), creates: "w-0 w-0 js-w-0, other-0 other js-other"},
		"a suspended Job lacks its group": {
			set: []func(*jobsetv1alpha2.JobSet){apart}, have: deleting("PodGroup/js-w-1"), resumes: "js-w-0, js-other-0", jobs: []*batchv1.Job{
				jobNamed("w", 0, jobIsSuspended, inGroup("js-w-0")), jobNamed("w", 1, jobIsSuspended, inGroup("js-w-1")), jobNamed("other", 0, jobIsSuspended, inGroup("js-other")),
			},
		},
		"the group of several replicatedJobs lacks": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(entries(entry(false, "w"), entry(false, "other")))}, have: deleting("PodGroup/js-w"), creates: "other-0 other js-other",
		},
		"the Workload lacks":       {set: []func(*jobsetv1alpha2.JobSet){apart}, have: deleting("Workload/js")},
		"the old group goes first": {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, have: deleting("PodGroup/js"), jobs: suspendedJobs},
		"a group for each replicatedJob, in order": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(), inOrder}, groups: "Workload/js PodGroup/js-w PodGroup/js-other",
		},
		"the first ones start, in order": {set: []func(*jobsetv1alpha2.JobSet){scheduling(), inOrder}, have: none, creates: "w-0 w js-w, w-1 w js-w"},
		"suspended Jobs have their group from the start": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(), isSuspended}, creates: "w-0 js js, w-1 js js, other-0 js js",
		},
		"groups of a suspended set go":           {set: []func(*jobsetv1alpha2.JobSet){scheduling(), isSuspended}, have: none, jobs: suspendedJobs, groups: "-Workload/js -PodGroup/js"},
		"groups stay while a suspended set runs": {set: []func(*jobsetv1alpha2.JobSet){scheduling(), isSuspended}, have: none, jobs: oneRuns},
		"a suspension is taken back":             {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, have: none, jobs: oneRuns, resumes: "js-w-0, js-w-1"},
		"groups of a finished set go":            {set: []func(*jobsetv1alpha2.JobSet){scheduling(), completed}, have: none, groups: "-Workload/js -PodGroup/js"},
		"a resumed set":                          {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, jobs: suspendedJobs, groups: "Workload/js PodGroup/js"},
		"a resumed set with groups":              {set: []func(*jobsetv1alpha2.JobSet){scheduling()}, have: none, jobs: suspendedJobs, resumes: "js-w-0, js-w-1, js-other-0"},
		"groups changed while the set was suspended": {
			set: []func(*jobsetv1alpha2.JobSet){apart}, have: none, jobs: suspendedJobs, deletes: "js-other-0, js-w-0, js-w-1",
		},
		"groups stay for a restart": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(), restarted(1, 1)}, have: none, jobs: []*batchv1.Job{jobNamed("w", 0)},
			creates: "w-1 js js, other-0 js js", deletes: "js-w-0",
		},
		"somebody changed the number": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: "-PodGroup/js", have: func(name string, object *unstructured.Unstructured) {
				if name == "PodGroup/js" {
					_ = unstructured.SetNestedField(object.Object, int64(1), "spec", "schedulingPolicy", "gang", "minCount")
				}
			},
		},
		"somebody changed a template": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling()}, groups: "-Workload/js", have: func(name string, object *unstructured.Unstructured) {
				if name == "Workload/js" {
					_ = unstructured.SetNestedSlice(object.Object, []any{map[string]any{"name": "mine"}}, "spec", "podGroupTemplates")
				}
			},
		},
		"a cluster that drops priority classes": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling(), prioritized}, have: class(""), creates: "w-0 js js, w-1 js js, other-0 js js",
		},
		"another priority class": {set: []func(*jobsetv1alpha2.JobSet){scheduling(), prioritized}, have: class("low"), groups: "-PodGroup/js"},
		"the default priority class of the cluster": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling()}, have: class("default"), creates: "w-0 js js, w-1 js js, other-0 js js",
		},
		"defaults of the API do not matter": {
			set: []func(*jobsetv1alpha2.JobSet){scheduling()}, creates: "w-0 js js, w-1 js js, other-0 js js", have: func(name string, object *unstructured.Unstructured) {
				if name == "PodGroup/js" {
					_ = unstructured.SetNestedMap(object.Object, map[string]any{"single": map[string]any{}}, "spec", "disruptionMode")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), with("other", 1)}, tc.set...)...)
			o := observe(js, tc.jobs...)
			if !tc.off {
				o.Grouped = &gang.Observed{API: gang.V1beta1}
			}
			if tc.have != nil {
				o.Grouped.Objects = existing(js, tc.have)
			}
			p := Decide(o)
			diff(t, "groups", tc.groups, changedGroups(p.Groups))
			diff(t, "creates", tc.creates, createdIn(p))
			diff(t, "resumes", tc.resumes, resumedNames(p))
			diff(t, "deletes", tc.deletes, strings.Join(refNames(p.DeleteJobs), ", "))
		})
	}
}

func changedGroups(changes gang.Changes) string {
	var out []string
	for _, object := range changes.Create {
		out = append(out, object.GetKind()+"/"+short(object.GetName()))
	}
	for _, ref := range changes.Delete {
		out = append(out, "-"+ref.Kind+"/"+short(ref.Name))
	}
	return strings.Join(out, " ")
}

func createdIn(p Plan) string {
	var out []string
	for _, job := range p.CreateJobs {
		words := []string{strings.TrimPrefix(job.Name, "js-")}
		if template := job.Annotations[gang.TemplateKey]; template != "" {
			words = append(words, short(template))
		}
		if group := job.Spec.Template.Spec.SchedulingGroup; group != nil {
			words = append(words, short(*group.PodGroupName))
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, ", ")
}

func resumedNames(p Plan) string {
	var out []string
	for _, patch := range p.PatchJobs {
		if patch.Suspend != nil && !*patch.Suspend {
			out = append(out, patch.Name)
		}
	}
	return strings.Join(out, ", ")
}

// A group that a user named in a pod template is passed on.
func TestOwnGroupOfTemplateStays(t *testing.T) {
	own := &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")}
	js := newSet(with("w", 2, func(rj *jobsetv1alpha2.ReplicatedJob) { rj.Template.Spec.Template.Spec.SchedulingGroup = own }))
	o := observe(js, jobNamed("w", 0, jobIsSuspended, func(job *batchv1.Job) { job.Spec.Template.Spec.SchedulingGroup = own }))
	o.Grouped = &gang.Observed{API: gang.V1beta1}
	p := Decide(o)
	diff(t, "creates", "w-1 mine", createdIn(p))
	diff(t, "resumes", "js-w-0", resumedNames(p))
}
