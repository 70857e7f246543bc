// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// observeRefusedPods adds the pods of the current Job that the API refuses, and remembers since when there are any.
func (s *Syncer) observeRefusedPods(key cache.ObjectName, obs *plan.Observed) {
	var refusal *refusals.Refusal
	current := plan.Current(*obs)
	for i := range obs.Children {
		if c := &obs.Children[i]; c.ChildRef == current && c.Kind == batchv1alpha1.StepKindJob {
			refusal = s.deps.Caches.PodRefusal(c.UID, c.LacksPods)
		}
	}
	if since := children.Since(s.podsRefused, key, refusal != nil, obs.Now.Time); refusal != nil {
		obs.RefusedPods = plan.RefusedPods{Message: refusal.Message, At: refusal.At, Since: since}
	}
}
