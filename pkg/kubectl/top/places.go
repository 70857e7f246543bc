// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Placement is where the pods of a set run.
type Placement struct {
	DomainLabel string  `json:"domainLabel"`
	Domains     []Place `json:"domains"`
	Nodes       []Place `json:"nodes"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Place is a node or a domain with the pods there. Pods that have no node yet are at the place without a name.
type Place struct {
	Name     string    `json:"name"`
	Domain   string    `json:"domain,omitempty"`
	Nodes    int       `json:"nodes,omitempty"`
	Pods     int       `json:"pods"`
	Ready    int       `json:"ready"`
	Requests Resources `json:"requests"`
}

// places sums pods up by node and by domain.
type places struct {
	domainOf       map[string]string
	nodes, domains map[string]*Place
}

func newPlaces(domainOf map[string]string) *places {
	return &places{domainOf: domainOf, nodes: map[string]*Place{}, domains: map[string]*Place{}}
}

func (p *places) add(pod *corev1.Pod, requests Resources) {
	node := p.nodes[pod.Spec.NodeName]
	if node == nil {
		node = &Place{Name: pod.Spec.NodeName, Domain: p.domainOf[pod.Spec.NodeName], Requests: Resources{}}
		p.nodes[node.Name] = node
	}
	node.add(pod, requests)
	if p.domainOf == nil || pod.Spec.NodeName == "" {
		return
	}
	domain := p.domains[node.Domain]
	if domain == nil {
		domain = &Place{Name: node.Domain, Requests: Resources{}}
		p.domains[domain.Name] = domain
	}
	if node.Pods == 1 {
		domain.Nodes++
	}
	domain.add(pod, requests)
}

func (p *Place) add(pod *corev1.Pod, requests Resources) {
	p.Pods++
	if ready(pod) {
		p.Ready++
	}
	snapshot.AddResources(p.Requests, requests)
}

// sorted returns the nodes, those with most pods that are not ready first, and the domains by name.
func (p *places) sorted() (nodes, domains []Place) {
	nodes, domains = []Place{}, []Place{}
	for _, node := range p.nodes {
		nodes = append(nodes, *node)
	}
	for _, domain := range p.domains {
		domains = append(domains, *domain)
	}
	slices.SortFunc(nodes, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Pods-b.Ready, a.Pods-a.Ready), cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(domains, func(a, b Place) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, domains
}

// The order in which columns are left out where there is little room: CPU and memory first, devices last.
const (
	dropDevice = iota + 1
	dropOther
	dropCPU
	dropMemory
)

// withResources adds the columns of the resources.
func withResources(resources []corev1.ResourceName, columns ...cli.Column) []cli.Column {
	for _, name := range resources {
		column := cli.Column{Title: string(name), Drop: dropDevice}
		switch name {
		case corev1.ResourceCPU:
			column = cli.Column{Title: "CPU", Drop: dropCPU}
		case corev1.ResourceMemory:
			column = cli.Column{Title: "MEMORY", Drop: dropMemory}
		}
		columns = append(columns, column)
	}
	return columns
}

// resources are the names of what the set requests: CPU and memory, then the others, without storage on the nodes.
func (t *Totals) resources() []corev1.ResourceName {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range slices.Sorted(maps.Keys(t.Requests)) {
		if !slices.Contains(names, name) && name != corev1.ResourceEphemeralStorage {
			names = append(names, name)
		}
	}
	return names
}

func cells(resources []corev1.ResourceName, requests Resources) []string {
	row := make([]string, 0, len(resources))
	for _, name := range resources {
		quantity, found := requests[name]
		if !found {
			row = append(row, "-")
			continue
		}
		row = append(row, formatted(name, quantity))
	}
	return row
}

// formatted writes a sum as a person would: CPUs with decimals, bytes in the largest fitting unit.
func formatted(name corev1.ResourceName, quantity resource.Quantity) string {
	switch {
	case name == corev1.ResourceCPU:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", quantity.AsApproximateFloat64()), "0"), ".")
	case name == corev1.ResourceMemory, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		value, unit := quantity.AsApproximateFloat64(), ""
		for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
			if value < 1024 {
				break
			}
			value, unit = value/1024, next
		}
		return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + unit
	}
	return cli.Number(int(quantity.Value()))
}
