// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package description

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
)

// maxResources is the number of resources of a run.
const maxResources = 32

// Usage sums up what pods request over time. Its zero value is empty.
type Usage struct {
	// sums are in thousandths of the unit of a resource, times milliseconds.
	sums map[corev1.ResourceName]*big.Int
}

// Add adds so many pods of a spec for a time. A pod requests what the scheduler counts: containers, init containers and sidecars, and the
// overhead. Like the main API server, it takes the limit of a container as its request if there is no request. What admission adds to pods
// is not known here.
func (u *Usage) Add(spec *corev1.PodSpec, pods int64, ready time.Duration) {
	if pods <= 0 || ready <= 0 {
		return
	}
	if u.sums == nil {
		u.sums = map[corev1.ResourceName]*big.Int{}
	}
	times := new(big.Int).Mul(big.NewInt(pods), big.NewInt(ready.Milliseconds()))
	for name, quantity := range resource.PodRequests(&corev1.Pod{Spec: withRequests(spec)}, resource.PodResourcesOptions{}) {
		amount := big.NewInt(quantity.Value())
		if name == corev1.ResourceCPU {
			amount = big.NewInt(quantity.MilliValue())
		} else {
			amount.Mul(amount, big.NewInt(1000))
		}
		if amount.Sign() <= 0 {
			continue
		}
		sum := u.sums[name]
		if sum == nil {
			sum = new(big.Int)
			u.sums[name] = sum
		}
		sum.Add(sum, amount.Mul(amount, times))
	}
}

// withRequests returns a spec whose containers request their limits where they request nothing else. It shares the rest.
func withRequests(spec *corev1.PodSpec) corev1.PodSpec {
	complete := *spec
	complete.Containers, complete.InitContainers = requesting(spec.Containers), requesting(spec.InitContainers)
	return complete
}

func requesting(containers []corev1.Container) []corev1.Container {
	all := slices.Clone(containers)
	for i := range all {
		if len(all[i].Resources.Limits) == 0 {
			continue
		}
		requests := maps.Clone(all[i].Resources.Limits)
		maps.Copy(requests, all[i].Resources.Requests)
		all[i].Resources.Requests = requests
	}
	return all
}

// Times returns the sums by resource, in the units of runs. Of more resources than a run has, those of Kubernetes come first.
func (u *Usage) Times() []archive.ResourceTime {
	names := slices.SortedFunc(maps.Keys(u.sums), func(a, b corev1.ResourceName) int {
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), strings.Compare(string(a), string(b)))
	})
	var times []archive.ResourceTime
	for _, name := range names[:min(len(names), maxResources)] {
		unit := big.NewInt(1000 * 1000) // thousandths, and milliseconds
		if inBytes(name) {
			unit.Mul(unit, big.NewInt(1<<20))
		}
		times = append(times, archive.ResourceTime{Name: string(name), AmountSeconds: saturated(unit.Quo(u.sums[name], unit))})
	}
	return times
}

// inBytes returns whether a resource is measured in bytes.
func inBytes(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func saturated(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return math.MaxInt64
}
