// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// refusedPods returns why the API refuses pods of the current child; empty if it does not. The second value is when
// that may be worth reporting.
func (b *statusBuilder) refusedPods(c Child) (message string, due time.Duration) {
	if c.RefusedPods != "" {
		return c.RefusedPods, 0 // its own controller has waited
	}
	refused := b.o.RefusedPods
	known := b.is(batchv1alpha1.ConditionResourcesUnavailable) && b.hasReason(batchv1alpha1.ConditionResourcesUnavailable,
		batchv1alpha1.ReasonPodsRefused)
	switch left := hostplan.PodsRefusedAfter - b.o.Now.Sub(refused.Since); {
	case refused.Message == "" || !c.LacksPods || !known && b.o.Now.Sub(refused.At) > hostplan.RefusedLately:
		return "", 0
	case !known && left > 0:
		return "", left
	}
	return refused.Message, 0
}
