// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes from the spec and the status of an object what the archive must not keep: the values of environment variables, and
// what an administrator has chosen to leave out. It works on the JSON of objects of any kind. Other literals, such as commands and their
// arguments, stay as they are.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// hashPrefix is what a hash begins with, and hashDigits is the number of its hexadecimal digits.
	hashPrefix = "sha256:"
	hashDigits = 16
	// maxDepth is how deep objects are read. What is deeper is removed. Specs of Kubernetes have less than 30 levels.
	maxDepth = 64
	// maxNames and maxName bound the options.
	maxNames = 1000
	maxName  = 317 // the longest key of a label or an annotation: 253, a slash and 63
)

// Options are what is kept and what is left out.
type Options struct {
	// AllowedEnv are the names of environment variables whose values are kept. A name that ends with * allows all names that begin so.
	AllowedEnv []string
	// OmittedKeys are what is left out, as kind:name. The kinds are annotation, label, env, and field for all fields with the name.
	OmittedKeys []string
	// Key is the key of the hashes. Equal values have equal hashes under the same key.
	Key []byte
}

// The kinds of keys that are left out.
const (
	kindAnnotation = "annotation"
	kindLabel      = "label"
	kindEnv        = "env"
	kindField      = "field"
)

// Redactor removes what must not be kept.
type Redactor struct {
	key      []byte
	allowed  map[string]bool
	prefixes []string
	omitted  map[string]map[string]bool // by kind and name
}

// New returns a redactor. Its errors name the option that is wrong.
func New(options Options) (*Redactor, error) {
	r := &Redactor{key: options.Key, allowed: map[string]bool{}, omitted: map[string]map[string]bool{
		// Annotations in which tools repeat the whole object.
		kindAnnotation: {"kubectl.kubernetes.io/last-applied-configuration": true},
		kindLabel:      {}, kindEnv: {}, kindField: {"managedFields": true},
	}}
	if len(options.AllowedEnv) > maxNames || len(options.OmittedKeys) > maxNames {
		return nil, fmt.Errorf("at most %d names are allowed", maxNames)
	}
	for _, name := range options.AllowedEnv {
		if err := r.allow(name); err != nil {
			return nil, err
		}
	}
	for _, key := range options.OmittedKeys {
		kind, name, found := strings.Cut(key, ":")
		names := r.omitted[kind]
		if !found || names == nil || name == "" || len(name) > maxName {
			return nil, fmt.Errorf("%q must be annotation:KEY, label:KEY, env:NAME or field:NAME", key)
		}
		names[name] = true
	}
	return r, nil
}

// allow allows the values of a variable, or of all whose names begin with what is before a *.
func (r *Redactor) allow(name string) error {
	prefix, isPrefix := strings.CutSuffix(name, "*")
	switch {
	case name == "" || len(name) > maxName || strings.Contains(prefix, "*"):
		return fmt.Errorf("%q must be the name of an environment variable, with * at the end only", name)
	case isPrefix:
		r.prefixes = append(r.prefixes, prefix)
	default:
		r.allowed[name] = true
	}
	return nil
}

// Details removes from the spec and the status of an object what must not be kept. It changes them.
func (r *Redactor) Details(spec, status map[string]any) {
	r.object(spec, 0)
	r.object(status, 0)
}

// Metadata removes from labels and annotations what must not be kept. It changes them.
func (r *Redactor) Metadata(labels, annotations map[string]string) {
	for key := range r.omitted[kindLabel] {
		delete(labels, key)
	}
	for key := range r.omitted[kindAnnotation] {
		delete(annotations, key)
	}
}

func (r *Redactor) object(object map[string]any, depth int) {
	for name, value := range object {
		switch {
		case r.omitted[kindField][name] || depth >= maxDepth:
			delete(object, name)
			continue
		case name == "env":
			if list, ok := value.([]any); ok {
				object[name] = r.env(list)
				value = object[name]
			}
		case name == "labels":
			r.omit(kindLabel, value)
		case name == "annotations":
			r.omit(kindAnnotation, value)
		}
		r.value(value, depth+1)
	}
}

func (r *Redactor) value(value any, depth int) {
	switch value := value.(type) {
	case map[string]any:
		r.object(value, depth)
	case []any:
		for i, item := range value {
			if depth >= maxDepth {
				value[i] = nil
				continue
			}
			r.value(item, depth+1)
		}
	}
}

func (r *Redactor) omit(kind string, value any) {
	if keys, ok := value.(map[string]any); ok {
		for key := range r.omitted[kind] {
			delete(keys, key)
		}
	}
}

// env returns the variables of a container that are kept, with hashes instead of their values.
func (r *Redactor) env(list []any) []any {
	kept := make([]any, 0, len(list))
	for _, item := range list {
		variable, ok := item.(map[string]any)
		if !ok {
			continue // no variable has another form
		}
		name, _ := variable["name"].(string)
		if r.omitted[kindEnv][name] {
			continue
		}
		if value, set := variable["value"]; set && !r.isAllowed(name) {
			variable["value"] = r.hash(fmt.Sprint(value))
		}
		kept = append(kept, variable)
	}
	return kept
}

func (r *Redactor) isAllowed(name string) bool {
	if r.allowed[name] {
		return true
	}
	for _, prefix := range r.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// hash returns what stands for a value: empty for an empty one, which is no secret.
func (r *Redactor) hash(value string) string {
	if value == "" {
		return ""
	}
	sum := hmac.New(sha256.New, r.key)
	sum.Write([]byte(value))
	return hashPrefix + hex.EncodeToString(sum.Sum(nil))[:hashDigits]
}
