// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mismatch

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// body is what was sent, and what it should have been.
type body struct {
	media  string
	data   []byte
	kind   schema.GroupVersionKind
	t      reflect.Type
	strict bool
}

// mismatches returns what does not fit in a body, and the name of its object if it has one.
func (b body) mismatches() (errs field.ErrorList, name string) {
	if b.isJSONPatch() {
		return b.operations(), ""
	}
	document, ok := b.read()
	if !ok {
		return nil, ""
	}
	if metadata, ok := document["metadata"].(map[string]any); ok {
		name, _ = metadata["name"].(string)
		name = name[:min(len(name), maxValue)]
	}
	if errs := b.header(document); len(errs) > 0 {
		return errs, name
	}
	return find(document, b.t, nil, b.strict), name
}

// header checks which kind a document says it is.
func (b body) header(document map[string]any) field.ErrorList {
	var errs field.ErrorList
	version, kind := b.kind.ToAPIVersionAndKind()
	for name, want := range map[string]string{"apiVersion": version, "kind": kind} {
		if got, isText := document[name].(string); isText && got != "" && got != want {
			errs = append(errs, field.Invalid(field.NewPath(name), got[:min(len(got), maxValue)], "must be "+want))
		}
	}
	return errs
}

// read decodes a document of JSON or YAML. Merge patches, strategic merge patches and server-side apply send documents that
// have the types of the object, as far as they say something about it.
func (b body) read() (map[string]any, bool) {
	data := b.data
	switch {
	case strings.HasSuffix(b.media, "yaml"):
		var err error
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return nil, false
		}
	case b.media != "" && !strings.HasSuffix(b.media, "json"):
		return nil, false
	}
	var document map[string]any
	return document, decode(data, &document)
}

// lost is what the library answers when a JSON patch cannot be applied. It loses the reason.
const lost = "the server rejected our request due to an error in our request"

// inapplicable returns an error for a JSON patch that has no effect on this object, or nil.
func (b body) inapplicable(answer *holder) error {
	if !b.isJSONPatch() || !bytes.Contains(answer.body.Bytes(), []byte(lost)) {
		return nil
	}
	err := errors.NewInvalid(b.kind.GroupKind(), "", nil)
	err.ErrStatus.Details, err.ErrStatus.Message = nil, "the JSON patch cannot be applied: every path must exist, except the last part of "+
		"the path of an add, and every test must hold"
	return err
}

func (b body) isJSONPatch() bool { return strings.HasSuffix(b.media, "json-patch+json") }

// operation is what a JSON patch changes at a path.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// operations returns what does not fit at the path of its operation of a JSON patch.
func (b body) operations() field.ErrorList {
	var operations []operation
	if !decode(b.data, &operations) {
		return nil
	}
	var errs field.ErrorList
	for _, o := range operations {
		if o.Op != "add" && o.Op != "replace" {
			continue
		}
		if target, path, ok := resolve(b.t, o.Path); ok {
			errs = append(errs, find(o.Value, target, path, b.strict)...)
		}
	}
	return errs
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// resolve follows a JSON pointer through a type. The index "-" is written as such.
func resolve(t reflect.Type, pointer string) (reflect.Type, *field.Path, bool) {
	var path *field.Path
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		step = unescape.Replace(step)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Struct:
			i := slices.IndexFunc(members(t), func(m member) bool { return m.name == step })
			if i < 0 {
				return nil, nil, false
			}
			t, path = members(t)[i].t, child(path, step)
		case reflect.Map:
			t, path = t.Elem(), path.Key(step)
		case reflect.Slice:
			t = t.Elem()
			if index, err := strconv.Atoi(step); err == nil && index >= 0 {
				path = path.Index(index)
			} else {
				path = path.Key(step)
			}
		default:
			return nil, nil, false
		}
	}
	return t, path, true
}
