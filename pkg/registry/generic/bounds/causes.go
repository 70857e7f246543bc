// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds keeps the answers to refused requests small, for every kind: no answer has more than 100 causes. The
// library joins the messages of all errors in quadratic time, so that errors are cut before it makes an answer of them.
package bounds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxCauses is the largest number of causes of an answer.
const MaxCauses = 100

// Causes returns the first errors, and as the last one how many more there are.
func Causes(errs field.ErrorList) field.ErrorList {
	if len(errs) <= MaxCauses {
		return errs
	}
	kept := MaxCauses - 1
	root := errs[kept].Field
	if end := strings.IndexAny(root, ".["); end > 0 {
		root = root[:end]
	}
	out := make(field.ErrorList, 0, MaxCauses)
	return append(append(out, errs[:kept]...), &field.Error{
		Type: field.ErrorTypeInvalid, Field: root, BadValue: field.OmitValueType{}, Detail: more(len(errs) - kept),
	})
}

func more(n int) string { return fmt.Sprintf("and %d more errors: correct the others first", n) }
