// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"reflect"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
)

// ShareSpec makes the set use the spec of another version of it, which must not change afterwards. The spec is the same in all
// versions of one generation. Otherwise the replicatedJobs are shared if they are equal: most changes suspend or resume.
func (j *JobSet) ShareSpec(other runtime.Object) {
	version, ok := other.(*JobSet)
	switch {
	case !ok:
	case j.Generation == version.Generation:
		j.Spec = version.Spec
	case reflect.DeepEqual(j.Spec.ReplicatedJobs, version.Spec.ReplicatedJobs):
		j.Spec.ReplicatedJobs = version.Spec.ReplicatedJobs
	}
}

// Weak returns a function that returns the set, or nil once nothing else refers to it.
func (j *JobSet) Weak() func() runtime.Object {
	pointer := weak.Make(j)
	return func() runtime.Object {
		if j := pointer.Value(); j != nil {
			return j
		}
		return nil
	}
}
