// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
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
		Cause: HeldAfterRestore, Summary: "held until a user resumes or deletes it: " + oneLine(c.Message),
		Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.plugin("timeline %s", d.ref()), d.plugin("resume %s", d.ref()), d.kubectl("delete %s %s", d.kind().Names[0],
			d.Name)},
	}}
}

// conditions are the conditions of the object, whatever its kind.
func (e *Evidence) conditions() []metav1.Condition {
	switch {
	case e.JobSet != nil:
		return e.JobSet.Status.Conditions
	case e.Sequence != nil:
		return e.Sequence.Status.Conditions
	case e.Set != nil:
		return e.Set.Status.Conditions
	case e.RolesSet != nil:
		return e.RolesSet.Status.Conditions
	}
	return nil
}

// childUnreadable reports that the controller waits for a child that the server cannot read in its store.
func childUnreadable(d *diagnosis) []Finding {
	c := meta.FindStatusCondition(d.conditions(), batchv1alpha1.ConditionProgressing)
	if c == nil || c.Reason != batchv1alpha1.ReasonChildUnreadable {
		return nil
	}
	return []Finding{{
		Cause: ChildUnreadable, Summary: oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{"kubectl jobset doctor  # names the key in etcd"},
	}}
}

// olderThanNamespace reports that the controller leaves the object alone because its namespace is not the one in which it was created.
func olderThanNamespace(d *diagnosis) []Finding {
	c := meta.FindStatusCondition(d.conditions(), namespaceuid.Condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	name := d.kind().Names[0]
	return []Finding{{
		Cause: OlderThanNamespace, Summary: oneLine(c.Message), Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{
			d.kubectl("delete %s %s", name, d.Name),
			d.kubectl("annotate %s %s --overwrite %s=%s", name, d.Name, namespaceuid.Annotation,
				fmt.Sprintf("$(kubectl get namespace %s -o jsonpath='{.metadata.uid}')", d.Namespace)),
		},
	}}
}
