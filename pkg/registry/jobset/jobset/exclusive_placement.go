// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxShownKey is how many bytes of a wrong key are shown.
const maxShownKey = 64

// exclusivePlacement warns of exclusive placement that is ignored. Without the feature ExclusivePlacement, only the node-selector strategy
// is supported. It reads the gate of the server: the gate of the controller, which decides, is expected to be the same.
func (w *warner) exclusivePlacement(js *jobset.JobSet, path *field.Path) {
	set, setIgnored := field.NewPath("metadata", "annotations"), false
	w.annotations(js.Annotations, set)
	w.levels(js, set)
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Child("replicatedJobs").Index(i).Child("template")
		w.annotations(rj.Template.Annotations, p.Child("metadata", "annotations"))
		if _, found := rj.Template.Annotations[jobsetv1alpha2.PlacementLevelsKey]; found {
			w.Add(p.Child("metadata", "annotations").Key(jobsetv1alpha2.PlacementLevelsKey),
				"has no effect on a replicatedJob; set it on the JobSet")
		}
		podAnnotations := p.Child("spec", "template", "metadata", "annotations")
		for _, key := range []string{jobset.ExclusiveKey, jobset.NodeSelectorStrategyKey} {
			if _, ok := rj.Template.Spec.Template.Annotations[key]; ok {
				w.Add(podAnnotations.Key(key), "has no effect on pods; set it on the JobSet or on the template of the replicatedJob")
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
	_, selector := annotations[jobset.NodeSelectorStrategyKey]
	switch {
	case exclusive && topology == "":
		w.Add(path.Key(jobset.ExclusiveKey), "has no effect while it is empty")
	case exclusive && !selector && w.gates.ExclusivePlacement:
		w.labelKey(path.Key(jobset.ExclusiveKey), topology)
	}
	if selector && !exclusive {
		w.Add(path.Key(jobset.NodeSelectorStrategyKey), "has no effect without the annotation %s", jobset.ExclusiveKey)
	}
}

// levels warns of labels that do not count for the domains of a set.
func (w *warner) levels(js *jobset.JobSet, path *field.Path) {
	value, found := js.Annotations[jobsetv1alpha2.PlacementLevelsKey]
	if !found {
		return
	}
	path = path.Key(jobsetv1alpha2.PlacementLevelsKey)
	if !slices.ContainsFunc(js.Spec.ReplicatedJobs, func(rj jobset.ReplicatedJob) bool {
		return helper.PlacementIgnored(js.Annotations, rj.Template.Annotations)
	}) {
		w.Add(path, "has no effect without the annotation %s", jobset.ExclusiveKey)
		return
	}
	n := 0
	for level := range strings.SplitSeq(value, ",") {
		level = strings.TrimSpace(level)
		switch {
		case level == "":
		case n == jobsetv1alpha2.MaxPlacementLevels:
			w.Add(path, "only the first %d labels have an effect", n)
			return
		default:
			n++
			w.labelKey(path, level)
		}
	}
}

// labelKey warns of a value that cannot be the key of a label of nodes.
func (w *warner) labelKey(path *field.Path, key string) {
	if len(validation.IsQualifiedName(key)) > 0 {
		w.Add(path, "%q is not the key of a label, so that no node has it; use a key such as topology.kubernetes.io/zone",
			text.TruncateWithEllipsis(key, maxShownKey))
	}
}
