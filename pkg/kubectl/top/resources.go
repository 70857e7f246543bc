// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

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
