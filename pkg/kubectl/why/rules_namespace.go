// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

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
