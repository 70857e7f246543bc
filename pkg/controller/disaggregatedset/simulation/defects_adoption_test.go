// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// This file holds what controllers with a defect see of orphans, and do with them.

func uncontrolled(object metav1.Object) {
	if !ownedBySet(object) {
		object.SetOwnerReferences(nil)
	}
}

func staying(object metav1.Object) { object.SetDeletionTimestamp(nil) }

// labeledByName takes the name of an object for what its labels should say.
func labeledByName(object metav1.Object) {
	switch parts := strings.Split(object.GetName(), "-"); len(parts) {
	case 2:
		object.SetLabels(map[string]string{disaggregatedsetv1.SetNameLabelKey: parts[0], disaggregatedsetv1.RoleLabelKey: parts[1]})
	case 4:
		if slice, err := strconv.ParseInt(parts[1], 10, 32); err == nil {
			object.SetLabels(helper.Labels(parts[0], int32(slice), parts[2], parts[3]))
		}
	}
}

func adoptAll(o plan.Observed, p *plan.Plan) { p.Adopt = plan.Decide(o).Adopt }

func seedAtOnce(o plan.Observed, p *plan.Plan) {
	alone := o
	alone.Orphans = slices.DeleteFunc(slices.Clone(o.Orphans), func(orphan plan.Orphan) bool { return orphan.Kind == plan.OrphanLeaderWorkerSet })
	p.CreateScalers = plan.Decide(alone).CreateScalers
}
