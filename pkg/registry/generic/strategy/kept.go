// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Field is a field that upstream's types lack. A client with these types drops it when it reads an object, and leaves it out when it
// updates the object as a whole.
type Field struct {
	// Path is the path of the field in the served version.
	Path fieldpath.Path
	// Value is a pointer to the field.
	Value any
}

// knowsFields is the key in contexts of requests whose client knows all fields.
type knowsFields struct{}

// WithKnownFields returns a context for a client that knows all fields: what it leaves out is removed.
func WithKnownFields(ctx context.Context) context.Context {
	return context.WithValue(ctx, knowsFields{}, true)
}

// mayLackFields returns whether the request replaces the whole object, and whether its client may not know some fields. A
// patch changes only what it names.
func mayLackFields(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.Verb == "update" && ctx.Value(knowsFields{}) == nil
}

// keep gives an object the stored values of fields that the client has left out, with their owners, and returns the paths of
// these fields. A client does not own a field that it leaves as it was.
func keep[P Object[P]](ctx context.Context, next, prev P, fields func(P) []Field) []fieldpath.Path {
	if fields == nil || !mayLackFields(ctx) {
		return nil
	}
	var kept []fieldpath.Path
	sent := fields(next)
	for _, stored := range fields(prev) {
		at := slices.IndexFunc(sent, func(f Field) bool { return f.Path.Equals(stored.Path) })
		if at < 0 {
			continue // what holds the field is gone
		}
		value, was := reflect.ValueOf(sent[at].Value).Elem(), reflect.ValueOf(stored.Value).Elem()
		if value.IsZero() && !was.IsZero() {
			value.Set(was)
			kept = append(kept, stored.Path)
		}
	}
	if len(kept) > 0 {
		next.SetManagedFields(withOwners(next.GetManagedFields(), prev.GetManagedFields(), kept))
	}
	return kept
}

// warnOfKept says how fields are removed that an update has kept.
func warnOfKept(ctx context.Context, kept []fieldpath.Path) {
	if FieldValidation(ctx) == metav1.FieldValidationIgnore {
		return
	}
	for _, path := range kept {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s: keeps its value, because clients that do not know the field leave it out of an update; "+
			"to remove it, send a patch that sets it to null", strings.TrimPrefix(path.String(), ".")))
	}
}

// withOwners returns the entries of managers with the fields at the paths, and below them, that their stored entries have.
// The library has taken these fields from their managers, because the client has left them out.
func withOwners(entries, stored []metav1.ManagedFieldsEntry, paths []fieldpath.Path) []metav1.ManagedFieldsEntry {
	out := slices.Clone(entries)
	for i := range stored {
		fields := fieldsBelow(stored[i], paths)
		if fields.Empty() {
			continue
		}
		at := slices.IndexFunc(out, func(e metav1.ManagedFieldsEntry) bool { return sameManager(e, stored[i]) })
		if at < 0 { // the manager owned nothing else
			at = min(i, len(out))
			out = slices.Insert(out, at, stored[i])
		} else if rest, err := fieldsOf(out[at]); err == nil {
			fields = rest.Union(fields)
		}
		if raw, err := fields.ToJSON(); err == nil {
			out[at].FieldsV1 = metav1.NewFieldsV1(string(raw))
		}
	}
	return out
}

// fieldsBelow returns the fields of an entry that are at the paths or below them. An entry that cannot be read has none: the
// library ignores it, too.
func fieldsBelow(entry metav1.ManagedFieldsEntry, paths []fieldpath.Path) *fieldpath.Set {
	all, err := fieldsOf(entry)
	below := fieldpath.NewSet()
	if err != nil {
		return below
	}
	for field := range all.All() {
		if slices.ContainsFunc(paths, func(p fieldpath.Path) bool { return len(field) >= len(p) && field[:len(p)].Equals(p) }) {
			below.Insert(field.Copy())
		}
	}
	return below
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}

// sameManager returns whether two entries are about one manager. An applier has one entry, whatever version it uses.
func sameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
		(a.Operation == metav1.ManagedFieldsOperationApply || a.APIVersion == b.APIVersion)
}
