// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxResources is how many resources of a node or pod are looked at. Others count as room.
	maxResources = 16
	// maxAmount bounds amounts, so that a difference of two never overflows.
	maxAmount = math.MaxInt64 / 8
)

// Amount is so much of one resource: thousandths of a processor, and units of everything else.
type Amount struct {
	Resource Name
	Value    int64
}

// Amounts is what a node has or a pod requests, sorted by resource. Equal ones share their memory: the pods of a Job,
// and nodes of one kind.
type Amounts struct {
	handle unique.Handle[[maxResources]Amount]
}

// NewAmounts returns the amounts of a list. Of more than 16 resources, those that most schedulers know come first, and
// then the first by name.
func NewAmounts(list corev1.ResourceList) Amounts {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b corev1.ResourceName) int {
		if x, y := native(a), native(b); x != y {
			return y - x
		}
		return strings.Compare(string(a), string(b))
	})
	var out [maxResources]Amount
	names = names[:min(len(names), maxResources)]
	for i, name := range names {
		out[i] = Amount{Resource: NameOf(string(name)), Value: amountOf(name, list[name])}
	}
	slices.SortFunc(out[:len(names)], func(a, b Amount) int { return compareNames(a.Resource, b.Resource) })
	return Amounts{unique.Make(out)}
}

func native(name corev1.ResourceName) int {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return 1
	}
	return 0
}

func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	value := quantity.Value()
	if name == corev1.ResourceCPU && value < maxAmount/1000 && value > -maxAmount/1000 {
		value = quantity.MilliValue()
	}
	return min(max(value, -maxAmount), maxAmount)
}

// All returns the amounts.
func (a Amounts) All() []Amount {
	if a == (Amounts{}) {
		return nil
	}
	all := a.handle.Value()
	n := slices.IndexFunc(all[:], func(x Amount) bool { return x.Resource == Name{} })
	if n < 0 {
		n = len(all)
	}
	return all[:n:n]
}

// MarshalText makes amounts readable where a snapshot is printed, and comparable where equal shapes are looked for.
func (a Amounts) MarshalText() ([]byte, error) {
	var b strings.Builder
	for i, amount := range a.All() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(amount.Resource.String() + "=" + formatAmount(amount))
	}
	return []byte(b.String()), nil
}

// formatAmount writes an amount as a quantity.
func formatAmount(a Amount) string {
	name := corev1.ResourceName(a.Resource.String())
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(a.Value, resource.DecimalSI).String()
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(a.Value, resource.BinarySI).String()
	}
	return resource.NewQuantity(a.Value, resource.DecimalSI).String()
}
