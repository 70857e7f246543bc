// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	withoutOwner = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "jobset_jobs_without_owner", StabilityLevel: metrics.ALPHA,
		Help: "Number of children whose owner the API does not know for more than a minute, by the kinds of owner and child: Jobs, " +
			"StatefulSets, Services and all others. The garbage collector deletes them.",
	}, []string{"owner_kind", "child_kind"})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(withoutOwner) })
