// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// heldAfterRestore reports that the controller leaves the object alone until a user decides.
func heldAfterRestore(d *diagnosis) []Finding {
	var c *metav1.Condition
	if d.Sequence != nil {
		c = d.condition(batchv1alpha1.ConditionHeld)
	} else {
		c = isTrue(d.JobSet, jobsetv1alpha2.Held)
	}
	if c == nil {
		return nil
	}
	return []Finding{{
		Cause: HeldAfterRestore, Summary: "held until somebody resumes or deletes it: " + oneLine(c.Message),
		Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.plugin("timeline %s", d.ref()), d.plugin("resume %s", d.ref()), d.kubectl("delete %s %s", d.kind().Names[0],
			d.Name)},
	}}
}
