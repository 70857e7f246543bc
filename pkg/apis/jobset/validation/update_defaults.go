// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// createDefaults are the fields of templates that only the creation of a set fills in, as upstream does, with what it fills in.
var createDefaults = map[string]string{
	"completionMode": string(batchv1.IndexedCompletion), "restartPolicy": string(corev1.RestartPolicyOnFailure),
}

// explainDefaults says what to write where an update leaves out a field that the creation has filled in. Charts that leave it out are
// refused with each update of the whole object, also if nothing else has changed.
func explainDefaults(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		name := err.Field[strings.LastIndexByte(err.Field, '.')+1:]
		value, filled := createDefaults[name]
		if was := fmt.Sprintf("was %q, now is not; ", value); filled && strings.HasPrefix(err.Detail, was) {
			err.Detail = fmt.Sprintf("%s%s: the creation has set the default, and an update of the whole object must keep it; write %s: %s",
				was, fieldIsImmutable, name, value)
		}
	}
	return errs
}
