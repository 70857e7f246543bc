// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// conditions are the conditions that say why a set does not have all its children.
var conditions = children.NewConditionCounts("disaggregatedset_disaggregatedsets_with_condition",
	"DisaggregatedSets", helper.Troubles())

var registerMetrics = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(conditions) })

// countConditions counts the conditions of a set as the cache shows it.
func countConditions(obj any) {
	if ds, ok := obj.(*disaggregatedsetv1.DisaggregatedSet); ok {
		conditions.Set(cache.MetaObjectToName(ds), ds.Status.Conditions)
	}
}

// blockedOf describes why a child could not be created or updated in the words of conditions.
func blockedOf(what plan.FailedWrite, err error) hostplan.BlockedChild {
	t := hostplan.BlockedChild{What: what.Note, Refusal: children.RefusalOf(err)}
	if errors.Is(err, errNameTaken) || errors.Is(err, errGoing) {
		t.Reason, t.MayPass = reasons.NameConflict, errors.Is(err, errGoing)
	}
	return t
}
