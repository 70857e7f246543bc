// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Results of a patch.
const (
	resultLabeled = "labeled"
	resultGone    = "gone"
	resultFailed  = "failed"
)

var (
	readyTotal = instrument.CounterVec("podgroup_ready_total",
		"Number of pod groups that became ready, by family of labels and by where the size came from: minMember, label, owners or pods.",
		"family", "source")

	patchesTotal = instrument.CounterVec("podgroup_label_patches_total",
		"Number of patches that set the ready label of a pod, by family of labels and by result: labeled, gone or failed.",
		"family", "result")

	readySeconds = instrument.HistogramVec("podgroup_ready_seconds",
		"Time from the creation of the first pod of a group until the group was ready, by family of labels.",
		metrics.ExponentialBuckets(1, 2, 14), "family")
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(readyTotal, patchesTotal, readySeconds)
	for _, prefix := range plan.Prefixes {
		for _, source := range plan.Sources {
			readyTotal.WithLabelValues(prefix.Name, string(source))
		}
		for _, result := range []string{resultLabeled, resultGone, resultFailed} {
			patchesTotal.WithLabelValues(prefix.Name, result)
		}
		readySeconds.WithLabelValues(prefix.Name)
	}
})

// countReady counts a group of which pods were labeled for the first time.
func countReady(obs *snapshot, p plan.Plan) {
	readyTotal.WithLabelValues(obs.Prefix.Name, string(p.Source)).Inc()
	first := obs.Now.Unix()
	for _, pod := range obs.Pods {
		first = min(first, pod.Created)
	}
	readySeconds.WithLabelValues(obs.Prefix.Name).Observe(float64(obs.Now.Unix() - first))
}
