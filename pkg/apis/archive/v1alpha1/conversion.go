// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// FieldLabels are the field selectors that lists of Runs understand. The values of the last four are times in RFC 3339; they select runs
// that began or ended at or after the time, or before it.
var FieldLabels = []string{
	"metadata.name", "metadata.namespace", "state", "user", "queue", "cause", "node", "kind", "object",
	"beganAfter", "beganBefore", "endedAfter", "endedBefore",
}

// addFieldLabelConversion states the field selectors that lists understand.
func addFieldLabelConversion(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Run"), func(label, value string) (string, string, error) {
		if slices.Contains(FieldLabels, label) {
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label %q is not supported: use one of %s", label, strings.Join(FieldLabels, ", "))
	})
}
