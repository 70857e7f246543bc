// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"sync"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

var (
	withoutOwner = instrument.GaugeVec("jobset_jobs_without_owner",
		"Number of children whose owner the API does not know for more than a minute, by the kinds of owner and child: Jobs, "+
			"StatefulSets, Services and all others. The garbage collector deletes them.", "owner_kind", "child_kind")
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(withoutOwner) })
