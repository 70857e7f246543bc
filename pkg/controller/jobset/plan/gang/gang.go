// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang decides about the groups of the pods of a JobSet that start together.
//
// A set with spec.scheduling has a Workload, and a PodGroup for each of its groups, while it runs: they are created before the
// Jobs are created or resumed, stay for restarts, and are deleted when the set is suspended or has finished. The scheduler knows
// a group by the name in its pods, so that Jobs are created with that name even while the set is suspended.
package gang

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TemplateKey is the annotation of a Job that names the template of its group in the Workload.
const TemplateKey = "scheduling.k8s.io/group-template-name"

// Observed is what the main API has of the groups of a set.
type Observed struct {
	// API is the version in which groups are written; empty while Objects are not known.
	API API
	// Provider is the scheduler with an own kind of groups; empty for Kubernetes.
	Provider gangplan.Provider
	// Absent means that the cluster has no API for groups.
	Absent bool
	// Problem is why Objects cannot be read, if that is known.
	Problem string
	// Objects are the Workloads and PodGroups that the set controls, those that are being deleted included.
	Objects []*unstructured.Unstructured
}

// Changes are the changes of the groups of a set. What is deleted is not created in the same plan.
type Changes struct {
	// Create are Workloads, and then PodGroups.
	Create []*unstructured.Unstructured
	// Delete are Workloads and PodGroups that the set does not need, or that differ from what it asks for.
	Delete []Ref
	// Refusal is why groups cannot be made although Jobs wait for them; nil unless that is known without a try.
	Refusal *hostplan.Refusal
	// Waiting means that Jobs wait for groups.
	Waiting bool
	// After is when to look again although nothing happens, because the groups are not known; 0 for never.
	After time.Duration
}

// Ref names one incarnation of a Workload or PodGroup.
type Ref struct {
	// Kind is Workload or PodGroup.
	Kind string
	// Name is the name of the object, in the namespace of the set.
	Name string
	// UID of the object.
	UID types.UID
	// Differs means that the set needs such an object, and that this one is another one than the set asks for.
	Differs bool
}

// Waits are the Jobs that wait for their group.
type Waits struct {
	// All means that all Jobs wait, because the groups are not known.
	All bool
	// ReplicatedJobs are names of replicatedJobs all of whose Jobs wait, and Jobs are names of single Jobs.
	ReplicatedJobs, Jobs []string
}

// AskedFor reports whether the pods of a set are to be grouped.
func AskedFor(js *jobsetv1alpha2.JobSet) bool {
	return js.Spec.Scheduling != nil && js.DeletionTimestamp == nil
}

// Compare returns how to bring the groups of a set that has not finished to where they should be, and which Jobs wait for that.
func Compare(js *jobsetv1alpha2.JobSet, have *Observed) (Changes, Waits) {
	if ptr.Deref(js.Spec.Suspend, false) || js.Spec.Scheduling == nil {
		return Delete(have), Waits{}
	}
	if have.API == "" {
		changes := Changes{Waiting: true, Refusal: have.refusal()}
		if !have.Absent {
			changes.After = unknownAfter
		}
		return changes, Waits{All: true}
	}
	wanted := newGroupObjects(have.API, js)
	changes, ready := regroup(have, wanted.all())
	changes.refuse(wanted.refuseFields())
	waits := wanted.waits(ready)
	changes.Waiting = len(waits.ReplicatedJobs)+len(waits.Jobs) > 0
	return changes, waits
}

// With returns these changes and more of them.
func (c Changes) With(more Changes) Changes {
	if len(c.Create)+len(c.Delete) == 0 && c.Refusal == nil && !c.Waiting && c.After == 0 {
		return more
	}
	return Changes{
		Create: slices.Concat(c.Create, more.Create), Delete: slices.Concat(c.Delete, more.Delete), Refusal: cmp.Or(c.Refusal, more.Refusal),
		Waiting: c.Waiting || more.Waiting, After: hostplan.Sooner(c.After, more.After),
	}
}

// Unawaited returns the same changes for a set all of whose Jobs run or have ended: none waits for a group.
func (c Changes) Unawaited() Changes { return Changes{Create: c.Create, Delete: c.Delete} }

// waits returns the Jobs whose groups are not ready. Those of other groups go on.
func (g groupObjects) waits(ready sets.Set[string]) (out Waits) {
	workload := g.api.Provider() != "" || ready.Has(kindWorkload+"/"+g.set.WorkloadName())
	for i := range g.groups {
		group := &g.groups[i]
		if workload && ready.Has(kindPodGroup+"/"+group.Name) && !ready.Has(lostTemplate+group.Template) {
			continue
		}
		for _, target := range g.set.Entries[group.Entry].Targets {
			if group.Job >= 0 {
				out.Jobs = append(out.Jobs, helper.JobName(g.js.Name, target, group.Job))
			} else {
				out.ReplicatedJobs = append(out.ReplicatedJobs, target)
			}
		}
	}
	return out
}

// lostTemplate begins the entries for templates of which the API did not keep all. Their groups are not ready, whatever
// the PodGroups are like.
const lostTemplate = "lost template/"

// Delete deletes all groups of a set.
func Delete(have *Observed) Changes {
	changes, _ := regroup(have, nil)
	return changes
}

// regroup returns how to get from the groups of a set to the wanted ones, and which of these are there, by kind and name. The name of an
// object that is being deleted is not free: a PodGroup goes only when no pod uses it any longer.
func regroup(have *Observed, wanted []*unstructured.Unstructured) (changes Changes, ready sets.Set[string]) {
	byName := make(map[string]*unstructured.Unstructured, len(wanted))
	for _, object := range wanted {
		byName[groupKey(object)] = object
	}
	ready = sets.New[string]()
	taken := sets.New[string]()
	for _, object := range have.Objects {
		key := groupKey(object)
		taken.Insert(key)
		switch want := byName[key]; {
		case object.GetDeletionTimestamp() != nil:
		case want != nil && sameGroup(want, object):
			changes.accept(want, object, ready)
		default:
			changes.Delete = append(changes.Delete, Ref{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(), Differs: want != nil})
		}
	}
	for _, object := range wanted {
		if !taken.Has(groupKey(object)) {
			changes.Create = append(changes.Create, object)
		}
	}
	return changes, ready
}

func groupKey(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + object.GetName()
}

// sameGroup reports whether an object asks for what is wanted. What the API fills in where nothing is wanted does not
// matter, and neither does what it did not keep.
func sameGroup(want, have *unstructured.Unstructured) bool {
	return slices.EqualFunc(specsOf(want), specsOf(have), func(want, have map[string]any) bool {
		return sameFields(want, have) || dropped(want, have) != ""
	})
}

// accept notes an object that is to stay: whether it is ready, or for which groups it is not. Groups that share a
// Workload do not wait for each other.
func (c *Changes) accept(want, have *unstructured.Unstructured, ready sets.Set[string]) {
	existing, lost := specsOf(have), false
	for i, spec := range specsOf(want) {
		field := dropped(spec, existing[i])
		if field == "" {
			continue
		}
		lost = true
		c.refuse(notKept(field, have))
		if name, ok := spec["name"].(string); ok {
			ready.Insert(lostTemplate + name)
		}
	}
	if !lost || have.GetKind() == kindWorkload {
		ready.Insert(groupKey(have))
	}
}

// specsOf returns the spec of a PodGroup, or the templates of a Workload.
func specsOf(object *unstructured.Unstructured) (out []map[string]any) {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	if object.GetKind() != kindWorkload {
		return []map[string]any{spec}
	}
	templates, _, _ := unstructured.NestedSlice(spec, "podGroupTemplates")
	for i := range templates {
		template, _ := templates[i].(map[string]any)
		out = append(out, template)
	}
	return out
}

// sameFields compares the fields that belong to the set. Those with a default of the API count only if they are wanted.
// A cluster that does not preempt groups as a whole drops their priority class, without which the priority of the pods
// counts.
func sameFields(want, have map[string]any) bool {
	for _, key := range []string{"name", "minMember", "workloadRef", "podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints",
		"resourceClaims"} {
		if !equality.Semantic.DeepEqual(want[key], have[key]) {
			return false
		}
	}
	if want["disruptionMode"] != nil && !equality.Semantic.DeepEqual(want["disruptionMode"], have["disruptionMode"]) {
		return false
	}
	class, kept := want["priorityClassName"], have["priorityClassName"]
	return class == nil || kept == nil || class == kept
}

// Names are the groups of the Jobs of one replicatedJob.
type Names struct {
	// whole is the group of all Jobs, unless each of them has its own.
	whole Name
	byJob []Name
	// Provider is the scheduler with an own kind of groups; empty for Kubernetes.
	Provider gangplan.Provider
}

// Name is the name of a PodGroup, and of its template in the Workload.
type Name struct{ Template, PodGroup string }

// NamesOf returns the groups of the pods of all replicatedJobs, by name; nil if the set has none.
func NamesOf(js *jobsetv1alpha2.JobSet, have *Observed) map[string]Names {
	if have == nil || js.Spec.Scheduling == nil {
		return nil
	}
	set, _ := helper.PodGroups(js)
	out := make(map[string]Names, len(set.Jobs))
	for _, group := range set.Groups() {
		for _, target := range set.Entries[group.Entry].Targets {
			names, name := out[target], Name{Template: group.Template, PodGroup: group.Name}
			names.Provider = have.Provider
			if group.Job < 0 {
				names.whole = name
			} else {
				names.byJob = append(names.byJob, name)
			}
			out[target] = names
		}
	}
	return out
}

// Of returns the group of the Job with the index; an empty name if it has none.
func (n Names) Of(index int32) Name {
	if int(index) < len(n.byJob) {
		return n.byJob[index]
	}
	return n.whole
}

// Apply puts the pods of a Job into their group.
func (n Names) Apply(template *corev1.PodTemplateSpec, index int32) {
	switch name := n.Of(index).PodGroup; {
	case name == "":
	case n.Provider == gangplan.Volcano:
		template.Annotations = hostplan.Merged(template.Annotations, map[string]string{leaderworkersetv1.PodGroupNameAnnotationKey: name})
	case n.Provider == gangplan.Coscheduling:
		template.Labels = hostplan.Merged(template.Labels, map[string]string{leaderworkersetv1.CoschedulingLabelKey: name})
	default:
		template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
	}
}
