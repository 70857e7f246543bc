// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
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
)

// A set with spec.scheduling has a Workload, and a PodGroup for each of its groups, while it runs: they are created before the Jobs are
// created or resumed, stay for restarts, and are deleted when the set is suspended or has finished. The scheduler knows a group by the name
// in its pods, so that Jobs are created with that name even while the set is suspended.

// GroupTemplateKey is the annotation of a Job that names the template of its group in the Workload.
const GroupTemplateKey = "scheduling.k8s.io/group-template-name"

// Grouped is what the main API has of the groups of a set.
type Grouped struct {
	// API is the version in which groups are written; empty while Objects are not known.
	API GroupsAPI
	// Provider is the scheduler with an own kind of groups; empty for Kubernetes.
	Provider gangplan.Provider
	// Absent means that the cluster has no API for groups.
	Absent bool
	// Problem is why Objects cannot be read, if that is known.
	Problem string
	// Objects are the Workloads and PodGroups that the set controls, those that are being deleted included.
	Objects []*unstructured.Unstructured
}

// GroupChanges are the changes of the groups of a set. What is deleted is not created in the same plan.
type GroupChanges struct {
	// Create are Workloads, and then PodGroups.
	Create []*unstructured.Unstructured
	// Delete are Workloads and PodGroups that the set does not need, or that differ from what it asks for.
	Delete []GroupRef
	// Refusal is why groups cannot be made although Jobs wait for them; nil unless that is known without a try.
	Refusal *Refusal
	// Waiting means that Jobs wait for groups.
	Waiting bool
}

// GroupRef names one incarnation of a Workload or PodGroup.
type GroupRef struct {
	// Kind is Workload or PodGroup.
	Kind string
	// Name is the name of the object, in the namespace of the set.
	Name string
	// UID of the object.
	UID types.UID
}

// AsksForGroups reports whether the pods of a set are to be grouped by this controller.
func AsksForGroups(js *jobsetv1alpha2.JobSet) bool {
	return js.Spec.Scheduling != nil && js.DeletionTimestamp == nil && Ours(js)
}

// group brings the groups of a set to where they should be, and holds back the Jobs whose groups are not there.
func (b *statusBuilder) group(owned children, open []bool) GroupChanges {
	if b.o.Grouped == nil {
		return GroupChanges{}
	}
	if suspended(b.o.JobSet) || b.o.JobSet.Spec.Scheduling == nil {
		return ungroup(b.o)
	}
	jobsWait := int64(startedNames(owned).Len()) < helper.TotalReplicas(b.o.JobSet)
	if b.o.Grouped.API == "" {
		clear(open)
		return GroupChanges{Waiting: jobsWait, Refusal: b.o.Grouped.refusal(jobsWait)}
	}
	wanted := newGroupObjects(b.o.Grouped.API, b.o.JobSet)
	changes, ready := regroup(b.o, wanted.all())
	changes.refuse(wanted.refuseFields())
	changes.Waiting = b.hold(wanted, ready, open) && jobsWait
	if !jobsWait {
		changes.Refusal = nil
	}
	return changes
}

// hold holds back the Jobs whose groups are not ready, and reports whether there are any. Those of other groups go on.
func (b *statusBuilder) hold(wanted groupObjects, ready sets.Set[string], open []bool) (held bool) {
	workload := wanted.api.provider() != "" || ready.Has(kindWorkload+"/"+wanted.set.WorkloadName())
	for i := range wanted.groups {
		group := &wanted.groups[i]
		if workload && ready.Has(kindPodGroup+"/"+group.Name) && !ready.Has(lostTemplate+group.Template) {
			continue
		}
		held = true
		for _, target := range wanted.set.Entries[group.Entry].Targets {
			switch rj, place := b.o.replicatedJob(target); {
			case rj == nil:
			case group.Job >= 0:
				b.o.index.held.Insert(helper.JobName(b.o.JobSet.Name, rj.Name, group.Job))
			default:
				open[place] = false
			}
		}
	}
	return held
}

// lostTemplate begins the entries for templates of which the API did not keep all. Their groups are not ready, whatever
// the PodGroups are like.
const lostTemplate = "lost template/"

// ungroup deletes all groups of a set.
func ungroup(o Observed) GroupChanges {
	if o.Grouped == nil {
		return GroupChanges{}
	}
	changes, _ := regroup(o, nil)
	return changes
}

// regroup returns how to get from the groups of a set to the wanted ones, and which of these are there, by kind and name. The name of an
// object that is being deleted is not free: a PodGroup goes only when no pod uses it any longer.
func regroup(o Observed, wanted []*unstructured.Unstructured) (changes GroupChanges, ready sets.Set[string]) {
	byName := make(map[string]*unstructured.Unstructured, len(wanted))
	for _, object := range wanted {
		byName[groupKey(object)] = object
	}
	ready = sets.New[string]()
	taken := sets.New[string]()
	for _, object := range o.Grouped.Objects {
		key := groupKey(object)
		taken.Insert(key)
		switch want := byName[key]; {
		case object.GetDeletionTimestamp() != nil:
		case want != nil && sameGroup(want, object):
			changes.accept(want, object, ready)
		default:
			changes.Delete = append(changes.Delete, GroupRef{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()})
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
func (c *GroupChanges) accept(want, have *unstructured.Unstructured, ready sets.Set[string]) {
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

// groupNames are the groups of the Jobs of one replicatedJob.
type groupNames struct {
	// whole is the group of all Jobs, unless each of them has its own.
	whole groupName
	byJob []groupName
	// provider is the scheduler with an own kind of groups; empty for Kubernetes.
	provider gangplan.Provider
}

type groupName struct{ template, podGroup string }

// groupsOf returns the groups of the pods of all replicatedJobs, by name.
func groupsOf(o Observed) map[string]groupNames {
	if o.Grouped == nil || o.JobSet.Spec.Scheduling == nil {
		return nil
	}
	set, _ := helper.PodGroups(o.JobSet)
	out := make(map[string]groupNames, len(set.Jobs))
	for _, group := range set.Groups() {
		for _, target := range set.Entries[group.Entry].Targets {
			names := out[target]
			names.provider = o.Grouped.Provider
			if group.Job < 0 {
				names.whole = groupName{group.Template, group.Name}
			} else {
				names.byJob = append(names.byJob, groupName{group.Template, group.Name})
			}
			out[target] = names
		}
	}
	return out
}

// groupNamesOf returns the groups of the Jobs of a replicatedJob; none if its pods have none.
func groupNamesOf(o Observed, name string) groupNames {
	if o.Grouped == nil {
		return groupNames{}
	}
	return o.index.groups[name]
}

func (g groupNames) of(index int32) groupName {
	if int(index) < len(g.byJob) {
		return g.byJob[index]
	}
	return g.whole
}

// apply puts the pods of a Job into their group.
func (g groupNames) apply(template *corev1.PodTemplateSpec, index int32) {
	switch name := g.of(index).podGroup; {
	case name == "":
	case g.provider == gangplan.Volcano:
		template.Annotations = merged(template.Annotations, map[string]string{leaderworkersetv1.PodGroupNameAnnotationKey: name})
	case g.provider == gangplan.Coscheduling:
		template.Labels = merged(template.Labels, map[string]string{leaderworkersetv1.CoschedulingLabelKey: name})
	default:
		template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
	}
}

// groupedElsewhere reports whether the pods of a suspended Job would name another group than the set has now. That
// cannot be changed in a Job.
func groupedElsewhere(o Observed, job *batchv1.Job) bool {
	if o.Grouped == nil {
		return false
	}
	rj, _ := o.replicatedJob(replicatedJobOf(job))
	want := ""
	if rj.Template.Spec.Template.Spec.SchedulingGroup != nil {
		want = ptr.Deref(rj.Template.Spec.Template.Spec.SchedulingGroup.PodGroupName, "")
	}
	if groups := groupNamesOf(o, rj.Name); groups.of(jobIndex(job)).podGroup != "" && groups.provider == "" {
		want = groups.of(jobIndex(job)).podGroup
	}
	have := ptr.Deref(job.Spec.Template.Spec.SchedulingGroup, corev1.PodSchedulingGroup{})
	return ptr.Deref(have.PodGroupName, "") != want
}
