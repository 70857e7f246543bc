// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	rack  = NameOf("rack")
	block = NameOf("block")
)

// world builds snapshots in tests.
type world struct {
	Cluster
	present  []Assignment
	requests []Request
}

// node adds a node with processors. Its labels are written as "rack=r1,block=b1".
func (w *world) node(name, labels string, cpu int, changes ...func(*corev1.Node)) *world {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, pair := range strings.Split(labels, ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			node.Labels[key] = value
		}
	}
	node.Status.Allocatable = list("cpu", strconv.Itoa(cpu), "pods", "110")
	for _, change := range changes {
		change(node)
	}
	w.Nodes = append(w.Nodes, NewNode(node))
	return w
}

// racks adds racks r0, r1 ... with as many nodes of 4 processors as listed.
func (w *world) racks(sizes ...int) *world {
	for i, size := range sizes {
		for j := range size {
			w.node(fmt.Sprintf("n%d-%d", i, j), fmt.Sprintf("rack=r%d", i), 4)
		}
	}
	return w
}

// pod adds a running pod. The job is "" for a pod of no JobSet, or else "set/index".
func (w *world) pod(node, job string, cpu int, priority int32) *world {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: list("cpu", strconv.Itoa(cpu))}}}}}
	set, _, _ := strings.Cut(job, "/")
	reduced, _ := NewPod(pod, set, job)
	w.Pods = append(w.Pods, reduced)
	return w
}

// has adds a present assignment.
func (w *world) has(job, domain string, priority int32) *world {
	set, _, _ := strings.Cut(job, "/")
	w.present = append(w.present, Assignment{
		Set: NameOf(set), Group: NameOf("w"), Job: NameOf(job), Topology: rack, Domain: NameOf(domain), Priority: priority,
	})
	return w
}

// shapeOf returns the shape of pods that request processors.
func shapeOf(cpu int, changes ...func(*corev1.PodSpec)) *Shape {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: list("cpu", strconv.Itoa(cpu))}}}}}
	for _, change := range changes {
		change(&template.Spec)
	}
	shape, err := NewShape(template, Environment{})
	if err != nil {
		panic(err)
	}
	return shape
}

func priority(p int32) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Priority = &p }
}

func never(s *corev1.PodSpec) {
	policy := corev1.PreemptNever
	s.PreemptionPolicy = &policy
}

// set adds a request for a set with one replicatedJob. Its pods request 4 processors, and so take a node each.
func (w *world) set(name string, jobs, pods int, changes ...func(*Request)) *world {
	r := Request{Set: NameOf(name), Created: metav1.NewTime(time.Unix(int64(len(w.requests)), 0))}
	r.Groups = []Group{group(name, "w", jobs, pods, 0)}
	for _, change := range changes {
		change(&r)
	}
	w.requests = append(w.requests, r)
	return w
}

// group returns a replicatedJob whose Jobs have indices from the first on.
func group(set, name string, jobs, pods, first int) Group {
	g := Group{Name: NameOf(name), Topology: rack, Shape: shapeOf(4), Pods: int32(pods)}
	for i := range jobs {
		g.Jobs = append(g.Jobs, Job{Key: NameOf(fmt.Sprintf("%s/%d", set, first+i)), Index: int32(first + i)})
	}
	return g
}

func shaped(s *Shape) func(*Request) {
	return func(r *Request) { r.Groups[0].Shape = s }
}

func previous(job int, domain string, nodes int32) func(*Request) {
	return func(r *Request) {
		r.Groups[0].Jobs[job].Previous, r.Groups[0].Jobs[job].PreviousNodes = NameOf(domain), nodes
	}
}

func avoid(job int, domains ...string) func(*Request) {
	return func(r *Request) {
		for _, d := range domains {
			r.Groups[0].Jobs[job].Avoid = append(r.Groups[0].Jobs[job].Avoid, NameOf(d))
		}
	}
}

func levels(keys ...string) func(*Request) {
	return func(r *Request) {
		for _, key := range keys {
			r.Levels = append(r.Levels, NameOf(key))
		}
	}
}

// place returns the results as text: "a: r1 r2", with what is displaced and with an outcome other than Placed.
func (w *world) place(full WhenFull) string {
	var out []string
	for _, r := range Place(&w.Cluster, w.present, w.requests, full) {
		out = append(out, r.text())
	}
	return strings.Join(out, "; ")
}

func (r *Result) text() string {
	out := r.Set.String() + ":"
	for _, a := range r.Assignments {
		out += " " + a.Domain.String()
	}
	for _, d := range r.Displaces {
		out += fmt.Sprintf(" (displaces %s in %s)", d.Set, d.Domain)
	}
	if r.Outcome != Placed {
		out += fmt.Sprintf(" %s, %s", r.Outcome, r.Action)
	}
	return out
}
