// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Compare looks for differences between the objects that were read and the store, and writes nothing. It returns how many objects differ.
func (i *Import) Compare(ctx context.Context, resources []schema.GroupResource) (int, error) {
	differ := 0
	note := func(n Name, difference string) {
		if difference != "" {
			differ++
			i.Report(n.String(), fmt.Errorf("%s", difference), true)
		}
	}
	for _, o := range i.objects {
		stored, err := i.Store.read(ctx, o.Name)
		if err != nil {
			return differ, fmt.Errorf("%s: %w", o.Name, err)
		}
		difference, err := i.Kinds.difference(o, stored)
		if err != nil {
			return differ, fmt.Errorf("%s: %w", o.Name, err)
		}
		note(o.Name, difference)
	}
	for _, resource := range resources {
		err := i.Store.names(ctx, resource, func(n Name) error {
			if !i.seen.Has(n) {
				note(n, "only in the store")
			}
			return nil
		})
		if err != nil {
			return differ, err
		}
	}
	return differ, nil
}

// difference says how what is stored differs from the source; it is empty if it does not.
func (k *Kinds) difference(o *object, e *entry) (string, error) {
	if e.revision == 0 {
		return "only at the source", nil
	}
	source, err := k.fields(o.data)
	if err != nil {
		return "", err
	}
	stored, err := k.fields(e.data)
	if err != nil {
		return "", fmt.Errorf("decoding what is stored: %w", err)
	}
	if source["metadata.uid"] != stored["metadata.uid"] {
		return fmt.Sprintf("its UID is %v at the source, and %v in the store", source["metadata.uid"], stored["metadata.uid"]), nil
	}
	names := sets.KeySet(source).Union(sets.KeySet(stored))
	for name := range names {
		if equality.Semantic.DeepEqual(source[name], stored[name]) {
			names.Delete(name)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return "differs in " + strings.Join(slices.Sorted(maps.Keys(names)), ", "), nil
}

// fields returns the parts of a stored object that can differ: those of its metadata, and the others as a whole.
func (k *Kinds) fields(data []byte) (map[string]any, error) {
	obj, err := runtime.Decode(k.codec, data)
	if err != nil {
		return nil, err
	}
	text, err := runtime.Encode(k.text, obj)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	metadata, _ := fields["metadata"].(map[string]any)
	delete(fields, "metadata")
	for name, value := range metadata {
		fields["metadata."+name] = value
	}
	return fields, nil
}
