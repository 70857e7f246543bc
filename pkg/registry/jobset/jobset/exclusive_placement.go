// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// exclusivePlacement warns of exclusive placement that is requested where it is ignored, or that no pod can satisfy.
func (w *warner) exclusivePlacement(js *jobset.JobSet, path *field.Path) {
	w.annotations(js.Annotations, field.NewPath("metadata", "annotations"))
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("template")
		w.annotations(rj.Template.Annotations, p.Child("metadata", "annotations"))
		podAnnotations := p.Child("spec", "template", "metadata", "annotations")
		for _, key := range []string{jobset.ExclusiveKey, jobset.NodeSelectorStrategyKey} {
			if _, ok := rj.Template.Spec.Template.Annotations[key]; ok {
				w.add(podAnnotations.Key(key), "has no effect on pods; set it on the JobSet or on the template of the replicatedJob")
			}
		}
		if exclusive(js.Annotations, rj.Template.Annotations) && ptr.Deref(rj.Template.Spec.CompletionMode, "") == batchv1.NonIndexedCompletion {
			w.add(p.Child("spec", "completionMode"), "NonIndexed pods cannot be placed exclusively and would never run; use Indexed")
		}
	}
}

// annotations warns of the annotations of a set, or of one replicatedJob, that Jobs inherit.
func (w *warner) annotations(annotations map[string]string, path *field.Path) {
	topology, exclusive := annotations[jobset.ExclusiveKey]
	if exclusive && topology == "" {
		w.add(path.Key(jobset.ExclusiveKey), "has no effect while empty; set it to the node label that names the topology domain")
	}
	if _, ok := annotations[jobset.NodeSelectorStrategyKey]; ok && !exclusive {
		w.add(path.Key(jobset.NodeSelectorStrategyKey), "has no effect without %s beside it", jobset.ExclusiveKey)
	}
}

// exclusive reports whether the placement of a replicatedJob needs a leader pod. Annotations of the replicatedJob override
// those of the set, each key on its own. The node-selector strategy needs no leader.
func exclusive(set, template map[string]string) bool {
	var topology string
	var selector bool
	for _, level := range []map[string]string{set, template} {
		if value, found := level[jobset.ExclusiveKey]; found {
			topology = value
			_, chosen := level[jobset.NodeSelectorStrategyKey]
			selector = selector || chosen
		}
	}
	return topology != "" && !selector
}
