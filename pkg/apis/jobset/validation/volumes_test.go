// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

func TestVolumeClaims(t *testing.T) {
	const name = "spec.volumeClaimPolicies[0].template[0].name"
	unmounted := func(name string) string {
		return fmt.Sprintf("must have a container or init container that mounts %q, because volumeClaimPolicies has a claim template of that name: add a volumeMount, or remove the template", name)
	}
	runRules(t, map[string]ruleCase{
		"3.4-9a a template name in two policies": {
			change: func(js *jobset.JobSet) {
				withClaims("data")(js)
				js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, js.Spec.VolumeClaimPolicies[0])
			},
			want: only("spec.volumeClaimPolicies[1].template[0].name", invalid, "must be unique among the claim templates of the JobSet"),
		},
		"3.4-9b a template name in capitals": {
			change: withClaims("Data"),
			want:   only(name, invalid, dns1123),
		},
		"3.4-9b a template without a name": {
			change: withClaims(""),
			want: []refusal{
				{"spec.replicatedJobs[1].template.spec.template.spec.containers[0].volumeMounts[0].name", required, "must be set"},
				{name, required, "must be set: claims are named after it"},
			},
		},
		"3.4-9c a claim name of 64 characters": {
			change: withClaims(strings.Repeat("d", 58)),
			want: only(name, invalid, fmt.Sprintf("must be shorter, because the name of a claim has at most 63 characters: %q would have 64; or shorten metadata.name",
				strings.Repeat("d", 58)+"-train")),
		},
		"3.4-9c a claim name of 63 characters passes": {change: withClaims(strings.Repeat("d", 57))},
		"3.4-9d a pod volume of the same name": {
			change: func(js *jobset.JobSet) {
				withClaims("data")(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "other"}, {Name: "data"}}
			},
			want: only("spec.replicatedJobs[0].template.spec.template.spec.volumes[1].name", invalid,
				"must not be the name of a claim template in volumeClaimPolicies: rename one of the two"),
		},
		"3.4-9e nobody mounts it": {
			change: func(js *jobset.JobSet) {
				withClaims("data")(js)
				js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].VolumeMounts = nil
			},
			want: only("spec.replicatedJobs", invalid, unmounted("data")),
		},
		"3.4-9e an init container may be the one that mounts it": {
			change: func(js *jobset.JobSet) {
				withClaims("data")(js)
				pod := &js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec
				pod.InitContainers, pod.Containers[0].VolumeMounts = []corev1.Container{*pod.Containers[0].DeepCopy()}, nil
				pod.InitContainers[0].Name = "init"
			},
		},
		"1.6 a claim from a source without kind and name": {
			change: func(js *jobset.JobSet) {
				withClaims("data")(js)
				js.Spec.VolumeClaimPolicies[0].Templates[0].Spec.DataSource = &corev1.TypedLocalObjectReference{}
			},
			want: []refusal{
				{"spec.volumeClaimPolicies[0].templates[0].spec.dataSource.kind", required, "must be set"},
				{"spec.volumeClaimPolicies[0].templates[0].spec.dataSource.name", required, "must be set"},
			},
		},
	})
}
