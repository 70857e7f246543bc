// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// roomCase is a cluster without room for a set, and the cause that has to be named.
type roomCase struct {
	world *world
	want  Cause
	// words must be in the sentence, and facts in the evidence.
	words, facts []string
}

// Changes of a cluster.

// affinity has the scheduler choose domains when there are too few.
func affinity(w *world) { w.full = placement.WhenFullAffinity }

// asks changes the set.
func asks(change func(*jobsetv1alpha2.JobSet)) func(*world) {
	return func(w *world) { change(w.js) }
}

func asksFor(jobs int32) func(*world) {
	return asks(func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = &jobs })
}

// spec changes the pod template of the set.
func template(change func(*corev1.PodSpec)) func(*world) {
	return asks(func(js *jobsetv1alpha2.JobSet) { change(&js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec) })
}

// runs places a set before.
func runs(name string, jobs, pods int32) func(*world) {
	return func(w *world) { w.earlier = append(w.earlier, w.set(name, jobs, pods)) }
}

// nodes changes all nodes.
func nodes(change func(*corev1.Node)) func(*world) {
	return func(w *world) {
		for _, node := range w.nodes {
			change(node)
		}
	}
}

func adds(object ...func(*world)) func(*world) {
	return func(w *world) {
		for _, add := range object {
			add(w)
		}
	}
}

// uses puts a pod of no set on each node, which requests so much CPU.
func uses(cpu string) func(*world) {
	return func(w *world) {
		for _, name := range sortedKeys(w.nodes) {
			w.pod("batch-"+name, name, cpu, nil)
		}
	}
}

// takenCases are the cases in which Jobs of others are in the way, or in which there are too few domains.
func takenCases() map[string]roomCase {
	second := asks(builders.WithJobs("readers", 2, 1))
	return map[string]roomCase{
		"no node has the label": {
			newWorld(2, nodes(func(n *corev1.Node) { n.Labels = nil })), TopologyLabelMissing,
			[]string{`2 pods, needs a domain of "example.com/rack": no node has that label`}, []string{"waits for domains: condition PlacementPending, reason NoDomain"},
		},
		"another set has all domains": {
			newWorld(2, runs("first", 2, 2)), NoFreeDomain,
			[]string{"of 2 domains, 2 are taken by jobs (team/first: 2)"}, []string{"in namespace team has 2 domains"},
		},
		"several sets have the domains": {
			newWorld(5, runs("a", 2, 2), runs("b", 1, 2), runs("c", 1, 2), runs("d", 1, 2)), NoFreeDomain,
			[]string{"5 are taken by jobs (team/a: 2, team/b: 1, team/c: 1, 1 other set)"}, []string{"jobset/a"},
		},
		"a set has one domain more than can be missed": {
			newWorld(3, asksFor(2), runs("first", 2, 2)), NoFreeDomain, []string{"1 is free and has room, 2 are taken by jobs (team/first: 2)"}, nil,
		},
		"a set without exclusive placement runs in the domain": {
			newWorld(1, func(w *world) {
				w.pod("plain-0", "r0-1", "1", map[string]string{jobsetv1alpha2.JobSetNameKey: "plain", jobsetv1alpha2.JobKey: "key"})
			}), NoFreeDomain, []string{"1 is taken by jobs (other/plain: 1)"}, []string{"in namespace other has 1 domain"},
		},
		"another set has the only domain that is large enough": {
			newWorld(1, func(w *world) { w.node("r1", "small").Status.Allocatable = amounts("4", "32Gi", 20) }, runs("first", 1, 4)), NoFreeDomain,
			[]string{"1 is taken by jobs (team/first: 1), 1 lacks room (cpu: 1)"}, nil,
		},
		"jobs of lower priority have the domain, and the set does not preempt": {
			newWorld(1, runs("first", 1, 2), template(func(s *corev1.PodSpec) {
				s.Priority, s.PreemptionPolicy = ptr.To[int32](100), ptr.To(corev1.PreemptNever)
			})), NoFreeDomain, []string{"(team/first: 1)"}, nil,
		},
		"there are fewer domains than jobs": {
			newWorld(2, asksFor(3)), TooFewDomains, []string{"3 jobs", "of 2 domains, 2 are free and have room"}, nil,
		},
		"there are fewer domains than jobs of two replicatedJobs": {
			newWorld(2, second), TooFewDomains, []string{"of other replicatedJobs: of 2 domains"}, nil,
		},
		"others have domains, and even without them there are too few": {
			newWorld(2, asksFor(3), runs("first", 1, 2)), TooFewDomains, []string{"1 is taken by jobs (team/first: 1)"}, []string{"in namespace team has 1 domain"},
		},
		"the controller may not list nodes": {
			newWorld(1, func(w *world) { w.forbidden = "nodes" }), NodesUnknown, []string{"nodes and pods are not known yet: nodes"}, []string{"reason NodesUnknown"},
		},
	}
}

// resourceCases are the cases in which the scheduler is left to find a domain, because all lack room.
func resourceCases() map[string]roomCase {
	lacks := func(what string, changes ...func(*world)) roomCase {
		return roomCase{newWorld(2, append(changes, affinity)...), DomainsLackRoom, []string{"2 pods wait for the scheduler", "2 lack room (" + what + ": 2)"}, []string{"event NoDomain"}}
	}
	return map[string]roomCase{
		"pods of no set use the CPU":        lacks("cpu", uses("5")),
		"the nodes have too little memory":  lacks("memory", nodes(func(n *corev1.Node) { n.Status.Allocatable = amounts("8", "6Gi", 20) })),
		"the nodes take no more pods":       lacks("pods", nodes(func(n *corev1.Node) { n.Status.Allocatable = amounts("8", "32Gi", 0) })),
		"the nodes have no such device":     lacks("nvidia.com/gpu", template(requesting("nvidia.com/gpu", "8"))),
		"pods of DaemonSets come to nodes":  lacks("cpu", daemon("6")),
		"the RuntimeClass has an overhead":  lacks("cpu", overhead("6")),
		"the namespace has a large default": lacks("cpu", defaults("12")),
		"what is free is spread over nodes": lacks("free resources spread over nodes", spread),
	}
}

// nodeCases are the cases in which the nodes do not take the pods.
func nodeCases() map[string]roomCase {
	keepOff := func(what string, changes ...func(*world)) roomCase {
		return roomCase{newWorld(2, append(changes, affinity)...), DomainsUnsuitable, []string{"2 have no node for the pods (" + what + ": 2)"}, []string{"event NoDomain"}}
	}
	zone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
	}}}}
	return map[string]roomCase{
		"the nodes have a taint": keepOff("taint dedicated", nodes(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		})),
		"the nodes are cordoned":                keepOff("taint node.kubernetes.io/unschedulable", nodes(func(n *corev1.Node) { n.Spec.Unschedulable = true })),
		"the nodes are not ready":               keepOff("taint node.kubernetes.io/not-ready", nodes(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })),
		"no node matches the selector":          keepOff("node selector or affinity", template(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} })),
		"no node matches the required affinity": keepOff("node selector or affinity", template(requiring(zone))),
	}
}

// schedulerCases are the cases in which Jobs exist whose pods wait for the scheduler.
func schedulerCases() map[string]roomCase {
	full := func(w *world) {
		w.says = "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
		w.later = uses("7")
	}
	return map[string]roomCase{
		"others have the domains, and the scheduler is to find one": {
			newWorld(1, affinity, runs("first", 1, 2)), NoFreeDomain, []string{"2 pods wait for the scheduler to find a domain", "(team/first: 1)"}, []string{"event NoDomain when the jobs were created"},
		},
		"there are too few domains, and the scheduler is to find some": {
			newWorld(1, affinity, asksFor(2)), TooFewDomains, []string{"4 pods wait for the scheduler", "of 1 domain"}, nil,
		},
		"others have the domains, and the event is gone": {
			newWorld(1, affinity, runs("first", 1, 2), func(w *world) { w.forgotten = true }), NoFreeDomain,
			[]string{"2 pods wait for the scheduler to find a domain, in which no other job"}, []string{"anti-affinity"},
		},
		"others took the room in the domain": {
			newWorld(2, full), DomainFull, []string{"2 pods find no node in example.com/rack=r0, the domain of the job train-workers-0, which is full: others have pods there"},
			[]string{"pod/batch-r0-0 in namespace other has 1 pod in the domain"},
		},
		"pods of another set came to the domain": {
			newWorld(2, func(w *world) {
				w.says = "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod anti-affinity rules."
			},
				func(w *world) { w.later = intruders }), DomainFull, []string{"example.com/rack=r0, the domain of the job train-workers-0, which is full: others have pods there"},
			[]string{"jobset/plain in namespace other has 1 pod in the domain", "job/train-workers-0 has left r1, where its pods found no nodes"},
		},
		"a node of the domain is gone": {
			newWorld(2, full, func(w *world) { w.later = gone("r0-1") }), DomainLostNodes, []string{"could use 2 nodes there when the job was placed, and can use 1 now"}, nil,
		},
		"all nodes of the domain are gone": {
			newWorld(2, full, func(w *world) { w.later = adds(gone("r0-0"), gone("r0-1")) }), DomainLostNodes, []string{"can use 0 now"}, []string{"none of the domain is left"},
		},
		"a node of the domain was cordoned": {
			newWorld(2, full, func(w *world) { w.later = func(w *world) { w.nodes["r0-0"].Spec.Unschedulable = true } }), DomainLostNodes,
			[]string{"2 nodes", "can use 1 now"}, []string{"node/r0-0 is cordoned"},
		},
		"a node of the domain is not ready": {
			newWorld(2, full, func(w *world) {
				w.later = func(w *world) { w.nodes["r0-1"].Status.Conditions[0].Status = corev1.ConditionUnknown }
			}), DomainLostNodes, []string{"2 nodes", "can use 1 now"}, []string{"node/r0-1 is not ready"},
		},
	}
}

// intruders are pods of another set in the domain, to which the Job has moved.
func intruders(w *world) {
	w.pod("plain-0", "r0-0", "1", map[string]string{jobsetv1alpha2.JobSetNameKey: "plain", jobsetv1alpha2.JobKey: "key"})
	w.js.Status.Placement.ReplicatedJobs[0].Jobs[0].Moves = &jobsetv1alpha2.JobMoves{Left: []string{"r1"}, LastTime: ptr.To(before(time.Minute))}
}

func gone(name string) func(*world) {
	return func(w *world) {
		for i, object := range w.objects {
			if node, ok := object.(*corev1.Node); ok && node.Name == name {
				w.objects = append(w.objects[:i:i], w.objects[i+1:]...)
				return
			}
		}
		panic(fmt.Sprintf("there is no node %s", name))
	}
}

func requesting(name corev1.ResourceName, amount string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests[name] = resource.MustParse(amount) }
}

func requiring(nodes *corev1.NodeSelector) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: nodes}}
	}
}

func daemon(cpu string) func(*world) {
	return func(w *world) {
		agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
		agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		w.objects = append(w.objects, agent)
	}
}

func overhead(cpu string) func(*world) {
	return func(w *world) {
		w.objects = append(w.objects, &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "vm", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		})
		template(func(s *corev1.PodSpec) { s.RuntimeClassName = ptr.To("vm") })(w)
	}
}

func defaults(cpu string) func(*world) {
	return func(w *world) {
		w.objects = append(w.objects, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "defaults"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}}},
		})
		template(func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = nil })(w)
	}
}

// spread gives one node of each rack CPUs and the other one memory.
func spread(w *world) {
	for name, node := range w.nodes {
		node.Status.Allocatable = amounts("16", "1Gi", 20)
		if name[len(name)-1] == '1' {
			node.Status.Allocatable = amounts("1", "64Gi", 20)
		}
	}
}
