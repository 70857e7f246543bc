// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestExclusiveTopology shows who places the Jobs of a replicatedJob: the controller, an administrator through node
// selectors, Kueue, or the scheduler alone.
func TestExclusiveTopology(t *testing.T) {
	const exclusive, selector = jobsetv1alpha2.ExclusiveKey, jobsetv1alpha2.NodeSelectorStrategyKey
	kueue := func(key string) map[string]string { return map[string]string{"kueue.x-k8s.io/" + key: "rack"} }
	for name, tc := range map[string]struct {
		set, template, pods map[string]string
		gate                string
		want                string
	}{
		"nothing is asked":                              {},
		"the set asks":                                  {set: map[string]string{exclusive: "rack"}, want: "rack"},
		"the replicatedJob asks":                        {template: map[string]string{exclusive: "zone"}, want: "zone"},
		"the replicatedJob asks for something else":     {set: map[string]string{exclusive: "rack"}, template: map[string]string{exclusive: "zone"}, want: "zone"},
		"the replicatedJob does not ask":                {set: map[string]string{exclusive: "rack"}, template: map[string]string{exclusive: ""}},
		"the pods ask":                                  {pods: map[string]string{exclusive: "rack"}},
		"an administrator labels nodes":                 {set: map[string]string{exclusive: "rack", selector: "true"}},
		"an administrator labels nodes for one of them": {set: map[string]string{exclusive: "rack"}, template: map[string]string{exclusive: "rack", selector: ""}},
		"Kueue must find a topology":                    {set: map[string]string{exclusive: "rack"}, pods: kueue("podset-required-topology")},
		"Kueue may find a topology":                     {set: map[string]string{exclusive: "rack"}, pods: kueue("podset-preferred-topology")},
		"Kueue finds any topology":                      {set: map[string]string{exclusive: "rack"}, pods: kueue("podset-unconstrained-topology")},
		"Kueue finds a topology for slices":             {set: map[string]string{exclusive: "rack"}, pods: kueue("podset-slice-required-topology")},
		"Kueue assigns a topology":                      {set: map[string]string{exclusive: "rack"}, gate: "kueue.x-k8s.io/topology"},
		"Kueue assigns the topology of a replicatedJob": {template: map[string]string{exclusive: "rack"}, gate: "kueue.x-k8s.io/topology"},
		"Kueue has admitted the set":                    {set: map[string]string{exclusive: "rack"}, pods: kueue("workload"), want: "rack"},
		"pods wait at another gate":                     {set: map[string]string{exclusive: "rack"}, gate: "kueue.x-k8s.io/admission", want: "rack"},
	} {
		t.Run(name, func(t *testing.T) {
			js := &jobsetv1alpha2.JobSet{}
			js.Annotations = tc.set
			rj := &jobsetv1alpha2.ReplicatedJob{Name: "w"}
			rj.Template.Annotations = tc.template
			rj.Template.Spec.Template.Annotations = tc.pods
			if tc.gate != "" {
				rj.Template.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: tc.gate}}
			}
			if got := ExclusiveTopology(js, rj); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
