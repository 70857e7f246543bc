// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Operation is one step of a JSON patch. Unlike a merge patch it can replace a whole map, which is how entries that a
// template no longer has are removed.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Set sets a field.
func Set(path string, value any) Operation { return Operation{Op: "add", Path: path, Value: value} }

// Remove removes a field, which must exist.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Key returns the path of a key of a map (RFC 6901).
func Key(path, key string) string { return path + "/" + pointerEscapes.Replace(key) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// SetKeys sets keys of a map one by one, so that others stay.
func SetKeys(path string, values map[string]string) (steps []Operation) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		steps = append(steps, Set(Key(path, key), values[key]))
	}
	return steps
}

// ChangeKeys turns an old map into another one key by key, because the child has keys that were not observed and that must
// stay. A key is set before it is removed: if the child has lost it meanwhile, the answer is to be a conflict, and not that
// the patch is invalid.
func ChangeKeys(path string, old, next map[string]string) (steps []Operation) {
	if old == nil {
		return []Operation{Set(path, next)}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if value, found := old[key]; !found || value != next[key] {
			steps = append(steps, Set(Key(path, key), next[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, stays := next[key]; !stays {
			steps = append(steps, Set(Key(path, key), ""), Remove(Key(path, key)))
		}
	}
	return steps
}

// Patch changes one version of a child. It returns the new resource version; none if the child is gone. The error may be an UndoneError.
func (w *Writer[T]) Patch(ctx context.Context, owner metav1.Object, child Ref, version string, steps []Operation,
	subresources ...string) (string, error) {
	guarded, what, value := &metav1.ObjectMeta{Name: child.Name, UID: child.UID}, fieldsOf(steps), ValueOf(steps)
	if err := w.guard.ChangingTo(owner, guarded, what, value); err != nil {
		return "", fmt.Errorf("patching %s %s/%s: %w", w.noun, owner.GetNamespace(), child.Name, err)
	}
	stored, err := w.patch(ctx, owner, child.Name, version, steps, subresources...)
	if stored != "" {
		w.guard.ChangedTo(owner, guarded, what, value)
	}
	return stored, err
}

// maxFields is how many fields of a change are named.
const maxFields = 3

// fieldsOf names the fields that steps change.
func fieldsOf(steps []Operation) string {
	var all []string
	for i := range steps {
		if name := fieldOf(steps[i].Path); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return OneOf(all)
}

// OneOf names the fields of a change, one of which others may have changed.
func OneOf(fields []string) string {
	switch n := len(fields); {
	case n == 0:
		return "nothing"
	case n == 1:
		return fields[0]
	case n <= maxFields+1:
		return "one of " + strings.Join(fields[:n-1], ", ") + " and " + fields[n-1]
	default:
		return fmt.Sprintf("one of %s and %d other fields", strings.Join(fields[:maxFields], ", "), n-maxFields)
	}
}

// keyed are the paths of maps, whose keys are named as they are.
var keyed = []string{
	"/metadata/annotations/", "/metadata/labels/", "/spec/template/metadata/annotations/", "/spec/template/metadata/labels/",
}

// fieldOf returns the name of a field, such as spec.suspend or metadata.labels[example.com/a].
func fieldOf(path string) string {
	field := func(path string) string { return strings.ReplaceAll(strings.Trim(path, "/"), "/", ".") }
	for _, parent := range keyed {
		if key, found := strings.CutPrefix(path, parent); found {
			return field(parent) + "[" + pointerNames.Replace(key) + "]"
		}
	}
	return field(path)
}

var pointerNames = strings.NewReplacer("~0", "~", "~1", "/")

// ValueOf returns a short name of a value that is written, for a Guard.
func ValueOf(value any) string {
	h := fnv.New64a()
	if json.NewEncoder(h).Encode(value) != nil {
		return "" // then the request cannot be made either
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// patch is Patch for changes that have a guard of their own.
func (w *Writer[T]) patch(ctx context.Context, owner metav1.Object, name, version string, steps []Operation,
	subresources ...string) (string, error) {
	failed := func(err error) (string, error) {
		return "", fmt.Errorf("patching %s %s/%s: %w", w.noun, owner.GetNamespace(), name, err)
	}
	body, err := json.Marshal(append([]Operation{Set("/metadata/resourceVersion", version)}, steps...))
	if err != nil {
		return failed(err)
	}
	var child T
	err = w.Changing(owner, Ref{Name: name}, strings.Join(subresources, "/"), func() error {
		child, err = w.client(owner.GetNamespace()).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{}, subresources...)
		return err
	})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return failed(err)
	}
	w.host.Consistency.Wrote(cache.MetaObjectToName(owner), w.resource, child.GetResourceVersion())
	return child.GetResourceVersion(), nil
}

// Relabel gives a child labels back that it has lost, without which no cache shows it or knows what it is. The result
// is Exists if it has lost none, Repaired, or NameFreed if it is gone. The error may be an UndoneError.
func (w *Writer[T]) Relabel(ctx context.Context, owner metav1.Object, child T, labels map[string]string) (Result, error) {
	const path = "/metadata/labels"
	lost := Lost(child, labels)
	if len(lost) == 0 {
		return Exists, nil
	}
	first := slices.Min(slices.Collect(maps.Keys(lost)))
	what := "the label " + first
	if err := w.guard.Changing(owner, child, what, "metadata", "labels", first); err != nil {
		return Refused, err
	}
	steps := SetKeys(path, lost)
	if child.GetLabels() == nil {
		steps = []Operation{Set(path, lost)}
	}
	version, err := w.patch(ctx, owner, child.GetName(), child.GetResourceVersion(), steps)
	switch {
	case err != nil:
		return Refused, err
	case version == "":
		return NameFreed, nil
	}
	w.guard.Changed(owner, child, what)
	return Repaired, nil
}

// Lost returns those labels that a child does not have.
func Lost(child metav1.Object, labels map[string]string) map[string]string {
	lost := maps.Clone(labels)
	maps.DeleteFunc(lost, func(key, value string) bool {
		has, found := child.GetLabels()[key]
		return found && has == value
	})
	return lost
}
