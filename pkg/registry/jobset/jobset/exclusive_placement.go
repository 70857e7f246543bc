// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// exclusivePlacement warns of exclusive placement that is ignored. Without the feature ExclusivePlacement, only the node-selector strategy is
// supported. The gate is that of the server: the one of the controller, which decides, is expected to be the same.
func (w *warner) exclusivePlacement(js *jobset.JobSet, path *field.Path) {
	set, setIgnored := field.NewPath("metadata", "annotations"), false
	w.annotations(js.Annotations, set)
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("template")
		w.annotations(rj.Template.Annotations, p.Child("metadata", "annotations"))
		podAnnotations := p.Child("spec", "template", "metadata", "annotations")
		for _, key := range []string{jobset.ExclusiveKey, jobset.NodeSelectorStrategyKey} {
			if _, ok := rj.Template.Spec.Template.Annotations[key]; ok {
				w.Add(podAnnotations.Key(key), "has no effect on pods; the node-selector strategy needs both annotations on the JobSet or on the template of the replicatedJob")
			}
		}
		if w.gates.ExclusivePlacement || !helper.PlacementIgnored(js.Annotations, rj.Template.Annotations) {
			continue
		}
		if _, own := rj.Template.Annotations[jobset.ExclusiveKey]; own {
			w.unsupported(p.Child("metadata", "annotations"))
		} else if !setIgnored {
			setIgnored = true
			w.unsupported(set)
		}
	}
}

func (w *warner) unsupported(path *field.Path) {
	w.Add(path.Key(jobset.ExclusiveKey),
		"ignored, because the feature gate ExclusivePlacement is off: turn it on in both programs with --feature-gates=ExclusivePlacement=true, "+
			"or label the nodes and add the annotation %s", jobset.NodeSelectorStrategyKey)
}

// annotations warns of the annotations of a set, or of one replicatedJob, that Jobs inherit.
func (w *warner) annotations(annotations map[string]string, path *field.Path) {
	topology, exclusive := annotations[jobset.ExclusiveKey]
	if exclusive && topology == "" {
		w.Add(path.Key(jobset.ExclusiveKey), "has no effect while it is empty")
	}
	if _, ok := annotations[jobset.NodeSelectorStrategyKey]; ok && !exclusive {
		w.Add(path.Key(jobset.NodeSelectorStrategyKey), "has no effect without the annotation %s", jobset.ExclusiveKey)
	}
}
