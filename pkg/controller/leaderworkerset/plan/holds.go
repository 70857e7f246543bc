// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// ApplyHash returns a hash of a leader StatefulSet as it is applied. A value that is no longer wanted shows in it, and
// not in the live object alone.
func ApplyHash(sts *appsv1.StatefulSet) string {
	data, err := json.Marshal(sts)
	if err != nil {
		return "" // applied at each pass
	}
	h := fnv.New128a()
	_, _ = h.Write(data)
	return strconv.Itoa(len(data)) + "-" + string(hex(h.Sum(nil)))
}

func hex(data []byte) (out []byte) {
	const digits = "0123456789abcdef"
	for _, b := range data {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return out
}

// holds returns whether the live object has all values that are wanted. It has others, too: defaults of the API, and
// what others have added.
func holds(live, wanted any) bool {
	l, w := fields(live), fields(wanted)
	if l == nil || w == nil {
		return false
	}
	delete(w, "status")
	return holdsMap(l, w)
}

// Differs names the first field of the live leader StatefulSet that has another value than the one that is applied.
func Differs(live, wanted *appsv1.StatefulSet) string {
	l, w := fields(live), fields(wanted)
	for _, parent := range []string{"metadata", "spec"} {
		lives, _ := l[parent].(map[string]any)
		wants, _ := w[parent].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(wants)) {
			if value, exists := lives[key]; !holdsValue(key, value, exists, wants[key]) {
				return parent + "." + key
			}
		}
	}
	return "the spec"
}

// fields returns an object as JSON has it; nil if it has none.
func fields(object any) (out map[string]any) {
	data, err := json.Marshal(object)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

func holdsMap(live, wanted map[string]any) bool {
	for key, w := range wanted {
		if l, exists := live[key]; !holdsValue(key, l, exists, w) {
			return false
		}
	}
	return true
}

func holdsValue(key string, live any, exists bool, wanted any) bool {
	switch w := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		l, _ := live.(map[string]any)
		return holdsMap(l, w)
	case []any:
		l, _ := live.([]any)
		if mergedLists[key] {
			return holdsAll(l, w)
		}
		return len(l) == len(w) && holdsEach(l, w)
	}
	return exists && equality.Semantic.DeepEqual(live, wanted)
}

// mergedLists are the fields whose lists are merged by key, so that others may add to them. Other lists are replaced as a whole.
var mergedLists = map[string]bool{
	"containers": true, "initContainers": true, "ephemeralContainers": true, "volumes": true, "env": true, "imagePullSecrets": true,
	"resourceClaims":  true,
	"schedulingGates": true, "claims": true, "ports": true, "volumeMounts": true, "volumeDevices": true, "hostAliases": true,
	"topologySpreadConstraints": true, "ownerReferences": true, "finalizers": true,
}

func holdsEach(live, wanted []any) bool {
	for i := range wanted {
		if !holdsValue("", live[i], true, wanted[i]) {
			return false
		}
	}
	return true
}

// holdsAll returns whether each wanted element is in the live list, in the same order.
func holdsAll(live, wanted []any) bool {
	next := 0
	for _, w := range wanted {
		for next < len(live) && !holdsValue("", live[next], true, w) {
			next++
		}
		if next == len(live) {
			return false
		}
		next++
	}
	return true
}

// hasTemplate returns whether the leader StatefulSet has the pod template of the spec.
func hasTemplate(o Observed, key string) bool {
	wanted := leaderTemplate(o.Set, key)
	return holds(&o.Leader.Spec.Template, &wanted)
}
