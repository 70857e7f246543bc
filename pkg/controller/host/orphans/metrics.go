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
		Help: "Number of Jobs, or StatefulSets of LeaderWorkerSets, whose owner the API does not know for more than a minute, by the " +
			"kind of the owner. The garbage collector deletes them.",
	}, []string{"owner_kind"})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(withoutOwner) })
