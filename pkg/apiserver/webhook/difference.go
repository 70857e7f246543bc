// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// maxListOperations bounds the operations on one list. Each moves the items behind it, so a list that differs more is replaced.
const maxListOperations = 200

// operation is one of RFC 6902.
type operation struct {
	Op, Path string
	Value    any
}

// MarshalJSON writes a value that is empty, too.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]string{"op": o.Op, "path": o.Path})
	}
	return json.Marshal(map[string]any{"op": o.Op, "path": o.Path, "value": o.Value})
}

// difference returns a JSON patch from one object to the other; nil if they are the same. It names only what differs,
// down to items of lists: what the object of a newer kube-apiserver has in fields that are unknown here stays as it is.
func difference(before, after any) ([]byte, error) {
	from, err := generic(before)
	if err != nil {
		return nil, err
	}
	to, err := generic(after)
	if err != nil {
		return nil, err
	}
	operations := differValue(nil, "", from, to)
	if len(operations) == 0 {
		return nil, nil
	}
	return json.Marshal(operations)
}

func generic(object any) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = kjson.Unmarshal(data, &m)
	return m, err
}

func differValue(operations []operation, path string, from, to any) []operation {
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			return differMap(operations, path, from, to)
		}
	case []any:
		if to, ok := to.([]any); ok {
			return differList(operations, path, from, to)
		}
	}
	if reflect.DeepEqual(from, to) {
		return operations
	}
	return append(operations, operation{Op: "replace", Path: path, Value: to})
}

func differMap(operations []operation, path string, from, to map[string]any) []operation {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, found := to[key]; !found {
			operations = append(operations, operation{Op: "remove", Path: join(path, key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if old, found := from[key]; found {
			operations = differValue(operations, join(path, key), old, to[key])
		} else {
			operations = append(operations, operation{Op: "add", Path: join(path, key), Value: to[key]})
		}
	}
	return operations
}

// differList compares lists whose items have the same names one by one, and takes other lists for ones to which items
// were added and from which items were removed.
func differList(operations []operation, path string, from, to []any) []operation {
	if slices.EqualFunc(from, to, func(a, b any) bool { return name(a) == name(b) && name(a) != "" }) {
		for i := range from {
			operations = differValue(operations, join(path, strconv.Itoa(i)), from[i], to[i])
		}
		return operations
	}
	changes, ok := align(path, from, to)
	if !ok {
		return append(operations, operation{Op: "replace", Path: path, Value: to})
	}
	return append(operations, changes...)
}

// align walks through both lists at the same time; at is the index in the list as it is after the operations so far. An
// item that still follows in the other list waits until what is before it there was added.
func align(path string, from, to []any) (operations []operation, ok bool) {
	wanted, follow := make([]string, len(to)), map[string]int{}
	for i := range to {
		wanted[i] = encoded(to[i])
		follow[wanted[i]]++
	}
	at := 0
	for i := range from {
		item := encoded(from[i])
		if follow[item] == 0 {
			operations = append(operations, operation{Op: "remove", Path: join(path, strconv.Itoa(at))})
			continue
		}
		for ; wanted[at] != item; at++ {
			follow[wanted[at]]--
			operations = append(operations, operation{Op: "add", Path: join(path, strconv.Itoa(at)), Value: to[at]})
		}
		follow[item]--
		at++
	}
	for ; at < len(to); at++ {
		operations = append(operations, operation{Op: "add", Path: join(path, strconv.Itoa(at)), Value: to[at]})
	}
	return operations, len(operations) <= maxListOperations
}

// encoded is the same for items that are the same: keys are written in order.
func encoded(item any) string {
	data, _ := json.Marshal(item)
	return string(data)
}

func name(item any) string {
	if m, ok := item.(map[string]any); ok {
		s, _ := m["name"].(string)
		return s
	}
	return ""
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func join(path, key string) string { return path + "/" + escape.Replace(key) }
