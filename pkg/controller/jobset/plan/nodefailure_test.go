// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestNodeFailure(t *testing.T) {
	killed := func(signal int32, reason string) *jobsetv1alpha2.FailureCause {
		return &jobsetv1alpha2.FailureCause{Node: "n1", Container: "main", ExitCode: ptr.To(128 + signal), Signal: ptr.To(signal), Reason: reason}
	}
	because := func(reason string) *jobsetv1alpha2.FailureCause {
		return &jobsetv1alpha2.FailureCause{Node: "n1", Pod: "p", Reason: reason}
	}
	says := func(message string) *jobsetv1alpha2.FailureCause {
		return &jobsetv1alpha2.FailureCause{Node: "n1", Container: "main", ExitCode: ptr.To[int32](1), Reason: "Error", Message: message}
	}
	for name, tc := range map[string]struct {
		cause *jobsetv1alpha2.FailureCause
		want  string
	}{
		"nothing":                               {},
		"no pod":                                {cause: &jobsetv1alpha2.FailureCause{Job: "js-w-0", Reason: "BackoffLimitExceeded"}},
		"no node":                               {cause: &jobsetv1alpha2.FailureCause{Pod: "p", Reason: "Evicted"}},
		"an exit code":                          {cause: says("bad configuration")},
		"an exit code above all signals":        {cause: &jobsetv1alpha2.FailureCause{Node: "n1", ExitCode: ptr.To[int32](255), Reason: "Error"}},
		"a signal":                              {cause: killed(9, "Error"), want: "container main was ended by signal 9"},
		"out of memory":                         {cause: killed(9, "OOMKilled"), want: "container main was ended by signal 9 (OOMKilled)"},
		"a bus error":                           {cause: killed(7, "Error"), want: "container main was ended by signal 7"},
		"preempted by a pod of higher priority": {cause: killed(15, "PreemptionByScheduler")},
		"the pod's time was over":               {cause: killed(9, "DeadlineExceeded")},
		"evicted":                               {cause: because("Evicted"), want: "Evicted"},
		"drained":                               {cause: killed(15, "EvictionByEvictionAPI"), want: "EvictionByEvictionAPI"},
		"the node is lost":                      {cause: because("DeletionByTaintManager"), want: "DeletionByTaintManager"},
		"a node without working devices":        {cause: because("UnexpectedAdmissionError"), want: "UnexpectedAdmissionError"},
		"a device error": {
			cause: says("epoch 7\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\ntraceback"),
			want:  "device error: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
		},
		"a device error in other letters": {cause: says("CUDA error: Uncorrectable ECC error encountered"), want: "device error: CUDA error: Uncorrectable ECC error encountered"},
		"a long reason":                   {cause: because("Evicted"), want: "Evicted"},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "reason", tc.want, nodeFailure(tc.cause)) })
	}
	if got := nodeFailure(says("Hardware Error " + strings.Repeat("é", 500))); len(got) > jobsetv1alpha2.MaxAvoidedReasonBytes || !strings.HasPrefix(got, "device error: Hardware Error é") {
		t.Errorf("a long reason: %d bytes, %q", len(got), got)
	}
}

// TestKeptOff asks the scheduler's own matcher on which nodes a pod may run.
func TestKeptOff(t *testing.T) {
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	matching := func(e ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: e}
	}
	named := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expression("metadata.name", corev1.NodeSelectorOpIn, name)}}
	}
	requiring := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	inZone := func(zones ...string) corev1.NodeSelectorTerm {
		return matching(expression("zone", corev1.NodeSelectorOpIn, zones...))
	}
	spread := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: inZone("a")}}}}
	for name, tc := range map[string]struct {
		affinity *corev1.Affinity
		off      []string
		want     string
	}{
		"no affinity":                       {off: []string{"n2"}, want: "n1 n3 n4"},
		"several nodes":                     {off: []string{"n1", "n2", "n4"}, want: "n3"},
		"affinity of other kinds":           {affinity: spread, off: []string{"n1"}, want: "n2 n3 n4"},
		"no terms":                          {affinity: requiring(), off: []string{"n1"}, want: "n2 n3 n4"},
		"one term":                          {affinity: requiring(inZone("a")), off: []string{"n1"}, want: "n2"},
		"a node needs to match one of them": {affinity: requiring(inZone("a"), inZone("b")), off: []string{"n1", "n3"}, want: "n2 n4"},
		"a term of a field":                 {affinity: requiring(named("n1"), named("n2")), off: []string{"n1"}, want: "n2"},
		"only the node of a field":          {affinity: requiring(named("n1")), off: []string{"n1"}},
		"a term that matches no node":       {affinity: requiring(corev1.NodeSelectorTerm{}, inZone("b")), off: []string{"n3"}, want: "n4"},
		"all terms match no node":           {affinity: requiring(corev1.NodeSelectorTerm{}), off: []string{"n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			given := tc.affinity.DeepCopy()
			affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: KeptOff(tc.affinity, tc.off)}})
			var fit []string
			for node, zone := range map[string]string{"n1": "a", "n2": "a", "n3": "b", "n4": "b"} {
				labels := map[string]string{corev1.LabelHostname: node, "zone": zone}
				if ok, err := affinity.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels}}); err != nil {
					t.Fatal(err)
				} else if ok {
					fit = append(fit, node)
				}
			}
			diff(t, "nodes", tc.want, sortedWords(fit))
			diff(t, "the affinity given", given, tc.affinity)
		})
	}
	if got := KeptOff(spread, []string{"n1"}); got.PodAntiAffinity == nil || len(got.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("other affinity is lost: %v", got)
	}
}
