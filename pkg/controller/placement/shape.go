// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

var onePod = apiresource.MustParse("1")

// Environment is what admission adds to the pods of a template. Each part may be absent.
type Environment struct {
	// RuntimeClass is the RuntimeClass that the template names.
	RuntimeClass *nodev1.RuntimeClass
	// LimitRanges are the LimitRanges of the namespace.
	LimitRanges []*corev1.LimitRange
	// PriorityClass is the PriorityClass that the template names, or the default one of the cluster.
	PriorityClass *schedulingv1.PriorityClass
}

// Unknowns are what pods ask for of which only the scheduler knows where it is. It counts as there.
type Unknowns uint8

const (
	// UnknownClaims are resource claims.
	UnknownClaims Unknowns = 1 << iota
	// UnknownVolumes are volumes that may be tied to some nodes.
	UnknownVolumes
	// UnknownPorts are ports of the host.
	UnknownPorts
	// UnknownSpread are topology spread constraints, and affinity to other pods.
	UnknownSpread
	// UnknownScheduler is another scheduler, which may have rules of its own.
	UnknownScheduler
	// UnknownGates are scheduling gates.
	UnknownGates
)

func (u Unknowns) String() string {
	var out []string
	for i, text := range []string{
		"resource claims", "volumes", "host ports", "spread and affinity among pods", "the rules of another scheduler", "scheduling gates",
	} {
		if u&(1<<i) != 0 {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// Shape is what matters of a pod before it has a node. It does not change.
type Shape struct {
	requests    Amounts
	tolerations []corev1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
	// keys are the labels that the affinity looks at. If it is byName, the name of the node matters too.
	keys   []Name
	byName bool
	// anywhere is whether the affinity matches all nodes.
	anywhere bool
	priority int32
	// preempts is whether pods of lower priority make room.
	preempts bool
	unknown  Unknowns
	// constraints are equal for shapes that match the same nodes.
	constraints [sha256.Size]byte
}

// NewShape reduces a pod template. The topology key in the node selector, if any, is for the caller to leave out: it is
// what is being decided.
func NewShape(template *corev1.PodTemplateSpec, env Environment) (*Shape, error) {
	spec := template.Spec.DeepCopy()
	env.admit(spec)
	requests := resource.PodRequests(&corev1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
	s := &Shape{
		requests: podAmounts(requests), tolerations: spec.Tolerations, unknown: unknowns(spec),
		priority: env.PriorityOf(spec), preempts: preempts(spec, env.PriorityClass),
	}
	required := requiredTerms(spec)
	s.affinity = nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity)
	s.keys, s.byName = affinityKeys(spec.NodeSelector, required)
	s.anywhere = len(spec.NodeSelector) == 0 && required == nil
	text, err := json.Marshal([]any{spec.NodeSelector, required, spec.Tolerations})
	if err != nil {
		return nil, fmt.Errorf("reducing a pod template: %w", err)
	}
	s.constraints = sha256.Sum256(text)
	return s, nil
}

// PriorityOf returns the priority that pods get.
func (e Environment) PriorityOf(spec *corev1.PodSpec) int32 {
	switch {
	case spec.Priority != nil:
		return *spec.Priority
	case e.PriorityClass != nil:
		return e.PriorityClass.Value
	}
	return 0
}

// Priority returns the priority of the pods.
func (s *Shape) Priority() int32 { return s.priority }

// admit does what admission does to a pod, as far as it matters here.
func (e Environment) admit(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = e.requestsOf(containers[i].Resources)
		}
	}
	if r := spec.Resources; r != nil {
		r.Requests = withDefaults(r.Requests, r.Limits)
	}
	if e.RuntimeClass == nil {
		return
	}
	if o := e.RuntimeClass.Overhead; o != nil && spec.Overhead == nil {
		spec.Overhead = o.PodFixed
	}
	if s := e.RuntimeClass.Scheduling; s != nil {
		spec.NodeSelector = merge(spec.NodeSelector, s.NodeSelector)
		spec.Tolerations = append(spec.Tolerations, s.Tolerations...)
	}
}

func merge(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// requestsOf returns the requests of a container: its own, else its limits, else the defaults of the namespace.
func (e Environment) requestsOf(r corev1.ResourceRequirements) corev1.ResourceList {
	out := withDefaults(r.Requests, r.Limits)
	for _, limits := range e.LimitRanges {
		for i := range limits.Spec.Limits {
			if item := &limits.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
				out = withDefaults(out, item.DefaultRequest)
			}
		}
	}
	return out
}

func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list)+len(defaults))
	maps.Copy(out, defaults)
	maps.Copy(out, list)
	return out
}

func preempts(spec *corev1.PodSpec, class *schedulingv1.PriorityClass) bool {
	policy := spec.PreemptionPolicy
	if policy == nil && class != nil {
		policy = class.PreemptionPolicy
	}
	return policy == nil || *policy != corev1.PreemptNever
}

func requiredTerms(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// affinityKeys returns the labels that a choice of nodes looks at, and whether it looks at their names.
func affinityKeys(selector map[string]string, required *corev1.NodeSelector) (keys []Name, byName bool) {
	for key := range selector {
		keys = append(keys, NameOf(key))
	}
	if required != nil {
		for _, term := range required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				keys = append(keys, NameOf(e.Key))
			}
			byName = byName || len(term.MatchFields) > 0
		}
	}
	slices.SortFunc(keys, compareNames)
	return slices.Compact(keys), byName
}

func unknowns(spec *corev1.PodSpec) (out Unknowns) {
	set := func(flag Unknowns, holds bool) {
		if holds {
			out |= flag
		}
	}
	set(UnknownClaims, len(spec.ResourceClaims) > 0)
	set(UnknownVolumes, slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil
	}))
	set(UnknownPorts, slices.ContainsFunc(spec.Containers, hasHostPort) || slices.ContainsFunc(spec.InitContainers, hasHostPort))
	a := spec.Affinity
	set(UnknownSpread, len(spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil))
	set(UnknownScheduler, spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName)
	set(UnknownGates, len(spec.SchedulingGates) > 0)
	return out
}

func hasHostPort(c corev1.Container) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
}
