// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// addFieldLabelConversion states the field selectors that lists and watches of JobSets understand.
func addFieldLabelConversion(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("JobSet"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace", "spec.suspend", "status.terminalState":
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label %q is not supported: use metadata.name, metadata.namespace, spec.suspend or status.terminalState",
			label)
	})
}
