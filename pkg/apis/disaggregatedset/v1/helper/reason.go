// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// Reason returns what keeps a set from having all its children, in one word; empty if nothing is known that does.
func Reason(conditions []metav1.Condition) string {
	for _, conditionType := range []string{namespaceuid.Condition, disaggregatedsetv1.ConditionChildCreationFailure} {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
