// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// Change is a field that differs between the object of the cluster and what the manifest makes of it.
type Change struct {
	// Field is the path, like spec.replicatedJobs[1].replicas. Items of lists that have names are compared with items of the same name; the
	// index is the index in the manifest's result, or in the cluster for an item that is removed.
	Field string `json:"field"`
	// Live and Next are the values in the cluster and with the manifest; absent where there is none.
	Live any `json:"live,omitempty"`
	Next any `json:"next,omitempty"`
	// Effect is what the change does.
	Effect Effect `json:"effect,omitempty"`
	// Text is the effect in a sentence.
	Text string `json:"text,omitempty"`
}

// serverFields are the fields of the metadata that only the server sets.
var serverFields = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp",
	"deletionGracePeriodSeconds"}

// usersPart returns a copy of the object without what the server, the controller and `kubectl apply` keep in it.
func usersPart(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	part := object.DeepCopy()
	for _, field := range serverFields {
		unstructured.RemoveNestedField(part.Object, "metadata", field)
	}
	for _, annotation := range []string{corev1.LastAppliedConfigAnnotation, namespaceuid.Annotation, creator.Annotation} {
		unstructured.RemoveNestedField(part.Object, "metadata", "annotations", annotation)
	}
	if len(part.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(part.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(part.Object, "status")
	return part
}

// changesBetween returns the differences of the parts that users write, in the order of the fields.
func changesBetween(live, next *unstructured.Unstructured) []Change {
	var found []Change
	compare("", usersPart(live).Object, usersPart(next).Object, &found)
	return found
}

// mapsOfKeys are the objects whose keys users choose. Each of their entries is a field, even if the object was absent before.
var mapsOfKeys = sets.New("labels", "annotations", "nodeSelector", "requests", "limits")

func compare(path string, live, next any, found *[]Change) {
	if reflect.DeepEqual(live, next) {
		return
	}
	if mapsOfKeys.Has(path[strings.LastIndexByte(path, '.')+1:]) {
		live, next = orEmpty(live), orEmpty(next)
	}
	liveMap, liveIs := live.(map[string]any)
	nextMap, nextIs := next.(map[string]any)
	if liveIs && nextIs {
		keys := sets.KeySet(liveMap).Union(sets.KeySet(nextMap))
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			compare(child(path, key), liveMap[key], nextMap[key], found)
		}
		return
	}
	liveList, liveIs := live.([]any)
	nextList, nextIs := next.([]any)
	if liveIs && nextIs && compareLists(path, liveList, nextList, found) {
		return
	}
	*found = append(*found, Change{Field: path, Live: live, Next: next})
}

// compareLists compares the items of two lists: those of the same name, or else of the same index in lists of the same length. It
// returns false for lists that have neither, which differ as a whole.
func compareLists(path string, live, next []any, found *[]Change) bool {
	liveNames, nextNames := namesOf(live), namesOf(next)
	if liveNames == nil || nextNames == nil {
		if len(live) != len(next) {
			return false
		}
		for i := range live {
			compare(fmt.Sprintf("%s[%d]", path, i), live[i], next[i], found)
		}
		return true
	}
	liveAt := map[string]int{}
	for i, name := range liveNames {
		liveAt[name] = i
	}
	var kept, order []string
	for i, name := range nextNames {
		var was any
		if at, known := liveAt[name]; known {
			was, kept = live[at], append(kept, name)
		}
		compare(fmt.Sprintf("%s[%d]", path, i), was, next[i], found)
	}
	stays := sets.New(nextNames...)
	for i, name := range liveNames {
		if stays.Has(name) {
			order = append(order, name)
			continue
		}
		*found = append(*found, Change{Field: fmt.Sprintf("%s[%d]", path, i), Live: live[i]})
	}
	if !slices.Equal(order, kept) {
		*found = append(*found, Change{Field: path, Live: order, Next: kept})
	}
	return true
}

// namesOf returns the names of items that are objects with different names; nil if they are not.
func namesOf(items []any) []string {
	names := make([]string, 0, len(items))
	seen := sets.New[string]()
	for _, item := range items {
		object, _ := item.(map[string]any)
		name, ok := object["name"].(string)
		if !ok || seen.Has(name) {
			return nil
		}
		seen.Insert(name)
		names = append(names, name)
	}
	return names
}

func orEmpty(value any) any {
	if value == nil {
		return map[string]any{}
	}
	return value
}

// child is the path of a key. Keys that users choose have dots and slashes in them.
func child(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + key + "]"
	}
	return strings.TrimPrefix(path+"."+key, ".")
}

// longestValue is how many bytes of a value are shown.
const longestValue = 60

// valueText is a value for humans.
func valueText(value any) string {
	text, isString := value.(string)
	switch {
	case value == nil:
		return "(none)"
	case isString:
		if text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n\r\t") {
			text = fmt.Sprintf("%q", text)
		}
	default:
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(encoded)
	}
	if runes := []rune(text); len(runes) > longestValue {
		text = string(runes[:longestValue-3]) + "..."
	}
	return text
}
