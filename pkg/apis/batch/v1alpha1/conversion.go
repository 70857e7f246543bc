// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
)

// Convert_batch_SequentialJobProgress_To_v1alpha1_SequentialJobProgress makes an absent list of completed steps an empty one,
// which is shown as [].
func Convert_batch_SequentialJobProgress_To_v1alpha1_SequentialJobProgress(in *batch.SequentialJobProgress, out *SequentialJobProgress,
	s conversion.Scope) error {
	if err := autoConvert_batch_SequentialJobProgress_To_v1alpha1_SequentialJobProgress(in, out, s); err != nil {
		return err
	}
	if out.CompletedIndices == nil {
		out.CompletedIndices = []int32{}
	}
	return nil
}

// addFieldLabelConversion states the field selectors that lists and watches understand.
func addFieldLabelConversion(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("SequentialJob"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", "metadata.namespace", "spec.suspend", "status.phase":
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label %q is not supported: use metadata.name, metadata.namespace, spec.suspend or status.phase", label)
	})
}
