// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mistakes reads what users do wrong: a JobSet without mistakes, and changes of it that no user should make.
package mistakes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Mistake is a change of the base.
type Mistake struct {
	// Name says what the user did.
	Name string `json:"name"`
	// Gates are switched on, unless one says otherwise: name=false.
	Gates []string `json:"gates"`
	// On is "create", which is the default, "update", "status", or a type of patch: "json", "merge", "strategic" or "apply".
	On string `json:"on"`
	// At is a prefix of the paths in Set.
	At string `json:"at"`
	// Set holds values by their path in the base. A null removes the field.
	Set map[string]any `json:"set"`
	// Patch is the body of a patch.
	Patch any `json:"patch"`
}

// Topic is what one file holds.
type Topic struct {
	Name     string
	Mistakes []Mistake
}

// Read returns the base, in JSON, and the mistakes of a directory: base.yaml, and in_*.yaml in their order.
func Read(dir string) (base []byte, topics []Topic, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "base.yaml"))
	if err != nil {
		return nil, nil, err
	}
	if base, err = yaml.YAMLToJSON(data); err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "in_*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if data, err = os.ReadFile(file); err != nil {
			return nil, nil, err
		}
		topic := Topic{Name: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "in_"), ".yaml")}
		if err := yaml.UnmarshalStrict(data, &topic.Mistakes); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		topics = append(topics, topic)
	}
	return base, topics, nil
}

// Apply sets the values in a document of JSON.
func (m Mistake) Apply(document []byte) ([]byte, error) {
	var object any
	if err := json.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	for path, value := range m.Set {
		if m.At != "" {
			path = strings.TrimSuffix(m.At+"."+path, ".")
		}
		object = set(object, steps.FindAllString(path, -1), runtime.DeepCopyJSONValue(value))
	}
	return json.Marshal(object)
}

var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// set returns the object with the value at the path. A step is the name of a field, an index, or the key of a map in
// brackets; an index that is the length of its list adds an item.
func set(object any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	step := strings.Trim(path[0], "[]")
	if i, err := strconv.Atoi(step); err == nil {
		items, _ := object.([]any)
		if i == len(items) {
			items = append(items, nil)
		}
		items[i] = set(items[i], path[1:], value)
		return items
	}
	fields, ok := object.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	if len(path) == 1 && value == nil {
		delete(fields, step)
	} else {
		fields[step] = set(fields[step], path[1:], value)
	}
	return fields
}
