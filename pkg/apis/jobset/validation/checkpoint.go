// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// CheckpointStep returns the step of the last checkpoint that the job has reported in the annotations of its set. Its form
// is canonical: digits without a sign and without leading zeros.
func CheckpointStep(js *jobset.JobSet) (step int64, ok bool) {
	value := js.Annotations[jobset.CheckpointStepKey]
	step, err := strconv.ParseInt(value, 10, 64)
	return step, err == nil && step >= 0 && strconv.FormatInt(step, 10) == value
}

func validateCheckpointStep(js *jobset.JobSet) field.ErrorList {
	value, reported := js.Annotations[jobset.CheckpointStepKey]
	if _, ok := CheckpointStep(js); ok || !reported {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(jobset.CheckpointStepKey)
	return field.ErrorList{field.Invalid(path, value, "must be a decimal number from 0 to 9223372036854775807, the step of the last "+
		"checkpoint")}
}

func validateCheckpoint(c *jobset.Checkpoint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Step < 0 {
		errs = append(errs, field.Invalid(path.Child("step"), c.Step, "must be 0 or more"))
	}
	if c.Time == nil {
		errs = append(errs, field.Required(path.Child("time"), "must be the time of the report"))
	}
	if c.GoodMilliseconds < 0 {
		errs = append(errs, field.Invalid(path.Child("goodMilliseconds"), c.GoodMilliseconds, "must be 0 or more"))
	}
	return errs
}
