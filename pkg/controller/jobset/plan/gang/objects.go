// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
)

// API is a version of the API group scheduling.k8s.io that has Workloads and PodGroups.
type API string

// Versions, the newest first.
const (
	V1beta1  API = "v1beta1"
	V1alpha3 API = "v1alpha3"
	V1alpha2 API = "v1alpha2"
)

// PodGroups of schedulers with an own kind, which have no Workloads.
const (
	Volcano      = API(gangplan.Volcano)
	Coscheduling = API(gangplan.Coscheduling)
)

// APIs are all versions of Kubernetes, the newest first.
var APIs = []API{V1beta1, V1alpha3, V1alpha2}

const (
	schedulingGroup = "scheduling.k8s.io"
	kindWorkload    = "Workload"
	kindPodGroup    = "PodGroup"
)

// GroupVersion returns the group and version.
func (a API) GroupVersion() schema.GroupVersion {
	if p := a.Provider(); p != "" {
		return p.Resource().GroupVersion()
	}
	return schema.GroupVersion{Group: schedulingGroup, Version: string(a)}
}

// Provider returns the scheduler with an own kind; empty for Kubernetes.
func (a API) Provider() gangplan.Provider {
	if p := gangplan.Provider(a); p.OwnKind() {
		return p
	}
	return ""
}

// APIOf returns the version with this group and version; empty if there is none.
func APIOf(gv schema.GroupVersion) API {
	for _, api := range append([]API{Volcano, Coscheduling}, APIs...) {
		if api.GroupVersion() == gv {
			return api
		}
	}
	return ""
}

// APIOf returns the version in which an object is known.
func (g *Observed) APIOf(ref Ref) API {
	for _, object := range g.Objects {
		if object.GetUID() == ref.UID {
			return APIOf(object.GroupVersionKind().GroupVersion())
		}
	}
	return g.API
}

// Objects returns the Workload and the PodGroups of a set that runs.
func Objects(api API, js *jobsetv1alpha2.JobSet) []*unstructured.Unstructured {
	return newGroupObjects(api, js).all()
}

// groupObjects makes the objects of the groups of one set.
type groupObjects struct {
	api    API
	js     *jobsetv1alpha2.JobSet
	set    podgroups.Set
	asked  []helper.PodGrouping
	groups []podgroups.Group
}

func newGroupObjects(api API, js *jobsetv1alpha2.JobSet) groupObjects {
	g := groupObjects{api: api, js: js}
	g.set, g.asked = helper.PodGroups(js)
	g.groups = g.set.Groups()
	return g
}

// all returns the Workload and the PodGroups, without those that the scheduler has not; nothing if no group would have pods.
func (g groupObjects) all() []*unstructured.Unstructured {
	if len(g.groups) == 0 {
		return nil
	}
	var out []*unstructured.Unstructured
	if g.api.Provider() == "" {
		out = append(out, g.workload())
	}
	for i := range g.groups {
		if g.unknown(&g.groups[i]) == "" {
			out = append(out, g.podGroup(&g.groups[i]))
		}
	}
	return out
}

func (g groupObjects) workload() *unstructured.Unstructured {
	templates := make([]any, len(g.groups))
	for i := range g.groups {
		template := g.spec(&g.groups[i])
		template["name"] = g.groups[i].Template
		templates[i] = template
	}
	gv := jobsetv1alpha2.SchemeGroupVersion
	return g.object(kindWorkload, g.set.WorkloadName(), map[string]any{
		"controllerRef":     map[string]any{"apiGroup": gv.Group, "kind": "JobSet", "name": g.js.Name},
		"podGroupTemplates": templates,
	})
}

func (g groupObjects) podGroup(group *podgroups.Group) *unstructured.Unstructured {
	if g.api.Provider() != "" {
		return g.withMembers(group)
	}
	spec := g.spec(group)
	if g.api == V1alpha2 {
		spec["podGroupTemplateRef"] = map[string]any{"workload": map[string]any{"workloadName": g.set.WorkloadName(),
			"podGroupTemplateName": group.Template}}
	} else {
		spec["workloadRef"] = map[string]any{"workloadName": g.set.WorkloadName(), "templateName": group.Template}
	}
	return g.object(kindPodGroup, group.Name, spec)
}

func (g groupObjects) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(g.api.GroupVersion().WithKind(kind))
	out.SetName(name)
	out.SetNamespace(g.js.Namespace)
	out.SetLabels(map[string]string{jobsetv1alpha2.JobSetNameKey: g.js.Name})
	out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(g.js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))})
	return out
}

// spec returns what a PodGroup and its template have in common. Values have the types of decoded JSON, so that they can be compared.
func (g groupObjects) spec(group *podgroups.Group) map[string]any {
	asked := &g.asked[group.Entry]
	out := map[string]any{"schedulingPolicy": policyFields(&asked.Policy, group.Pods)}
	if c := asked.Constraints; c != nil && len(c.Topology) > 0 {
		keys := make([]any, len(c.Topology))
		for i := range c.Topology {
			keys[i] = map[string]any{"key": c.Topology[i].Key}
		}
		out["schedulingConstraints"] = map[string]any{"topology": keys}
	}
	if len(asked.Claims) > 0 {
		out["resourceClaims"] = claimFields(asked.Claims)
	}
	if m := asked.Disruption; m != nil {
		out["disruptionMode"] = g.disruptionMode(m)
	}
	// A scheduler that preempts groups as a whole goes by the priority of the group, and not by that of its pods.
	if class := g.priorityClass(group); class != "" {
		out["priorityClassName"] = class
	}
	return out
}

func policyFields(policy *jobsetv1alpha2.SchedulingPolicy, pods int64) map[string]any {
	if policy.Gang == nil {
		return map[string]any{"basic": map[string]any{}}
	}
	if policy.Gang.MinCount != nil {
		pods = int64(*policy.Gang.MinCount)
	}
	return map[string]any{"gang": map[string]any{"minCount": pods}}
}

func claimFields(claims []jobsetv1alpha2.SchedulingResourceClaim) []any {
	out := make([]any, len(claims))
	for i := range claims {
		claim := map[string]any{"name": claims[i].Name}
		if name := claims[i].ResourceClaimName; name != nil {
			claim["resourceClaimName"] = *name
		}
		if name := claims[i].ResourceClaimTemplateName; name != nil {
			claim["resourceClaimTemplateName"] = *name
		}
		out[i] = claim
	}
	return out
}

// disruptionMode is a word in Kubernetes 1.36.
func (g groupObjects) disruptionMode(mode *jobsetv1alpha2.DisruptionMode) any {
	switch {
	case g.api == V1alpha2 && mode.All != nil:
		return "PodGroup"
	case g.api == V1alpha2:
		return "Pod"
	case mode.All != nil:
		return map[string]any{"all": map[string]any{}}
	}
	return map[string]any{"single": map[string]any{}}
}

// priorityClass is the priority class of the pods of the group. All of them have the same.
func (g groupObjects) priorityClass(group *podgroups.Group) string {
	for _, target := range g.set.Entries[group.Entry].Targets {
		if rj := helper.ReplicatedJob(g.js, target); rj != nil {
			return rj.Template.Spec.Template.Spec.PriorityClassName
		}
	}
	return ""
}
