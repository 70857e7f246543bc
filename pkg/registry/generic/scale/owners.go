// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners translates who owns the size between an object and its Scale.
type owners struct {
	*managedfields.ScaleHandler
	first fieldpath.Path
	rest  *fieldpath.Set
}

func newOwners(parent metav1.Object, paths []fieldpath.Path, version schema.GroupVersion) owners {
	mapping := managedfields.ResourcePathMappings{version.String(): paths[0]}
	return owners{
		ScaleHandler: managedfields.NewScaleHandler(parent.GetManagedFields(), version, mapping),
		first:        paths[0], rest: fieldpath.NewSet(paths[1:]...),
	}
}

// toParent returns the owners of the fields of the object. One number of the Scale may set several fields: who owns the
// first owns the others too. Otherwise a manifest that leaves all of them to an autoscaler would remove those that the
// handler does not know of.
func (o owners) toParent(scaleEntries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	entries, err := o.ToParent(scaleEntries)
	if err != nil || o.rest.Empty() {
		return entries, err
	}
	var out []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("reading the fields of manager %s: %w", entry.Manager, err)
		}
		if fields.Has(o.first) {
			fields = fields.Union(o.rest)
		} else {
			fields = fields.Difference(o.rest)
		}
		if fields.Empty() {
			continue
		}
		raw, err := fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("writing the fields of manager %s: %w", entry.Manager, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		out = append(out, entry)
	}
	return out, nil
}
