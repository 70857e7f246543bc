// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Placeholder refuses an object that is the placeholder of one that the server cannot read: its spec and status are not
// those of the object.
func Placeholder(sent unreadable.Annotated) field.ErrorList {
	if !unreadable.Is(sent) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(unreadable.Annotation),
		"must not be set: the server sets it on placeholders, in lists and watches, of objects that it cannot read; read the object again "+
			"and send that, or remove the annotation from a new object")}
}
