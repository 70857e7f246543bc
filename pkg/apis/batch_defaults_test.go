// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

func TestDefaultsOfSequences(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	cases := map[string]struct{ text, want string }{
		"an empty sequence gets the update strategy alone": {
			text: "{}", want: "{updateStrategy: {type: Continue}}",
		},
		"containers without a name are called after their index": {
			text: "containers: [{image: a}, {name: b}, {image: c}]",
			want: "{containers: [{name: step-0, image: a}, {name: b}, {name: step-2, image: c}], updateStrategy: {type: Continue}}",
		},
		"a container of a step is called as the step, unless it has a name": {
			text: "steps: [{name: a, container: {image: a}}, {name: b, container: {name: c}}, {name: d, job: {}}]",
			want: "{steps: [{name: a, container: {name: a, image: a}}, {name: b, container: {name: c}}, {name: d, job: {spec: {template: {spec: {containers: null}}}}}], updateStrategy: {type: Continue}}",
		},
		"the pods of a template are not restarted": {
			text: "template: {spec: {nodeSelector: {a: b}}}",
			want: "{template: {spec: {containers: null, nodeSelector: {a: b}, restartPolicy: Never}}, updateStrategy: {type: Continue}}",
		},
		"what is set stays": {
			text: "{suspend: false, backoffLimit: 0, updateStrategy: {type: Restart}, template: {spec: {restartPolicy: OnFailure}}}",
			want: "{suspend: false, backoffLimit: 0, updateStrategy: {type: Restart}, template: {spec: {containers: null, restartPolicy: OnFailure}}}",
		},
		"JobSets get the defaults of their schema": {
			text: "steps: [{name: a, jobSet: {spec: {replicatedJobs: [{name: w}]}}}]",
			want: `{steps: [{name: a, jobSet: {spec: {replicatedJobs: [
  {name: w, groupName: default, replicas: 1, template: {spec: {template: {spec: {containers: null}}}}}]}}}], updateStrategy: {type: Continue}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := &v1alpha1.SequentialJob{}, &v1alpha1.SequentialJob{}
			for text, into := range map[string]*v1alpha1.SequentialJob{tc.text: got, tc.want: want} {
				if err := yaml.UnmarshalStrict([]byte(text), &into.Spec); err != nil {
					t.Fatal(err)
				}
			}
			scheme.Default(got)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			again := got.DeepCopy()
			scheme.Default(again)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("defaults of defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsOfGroups(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for given, want := range map[v1alpha1.ReadyWhen]v1alpha1.ReadyWhen{"": "Running", "Ready": "Ready"} {
		group := &v1alpha1.PodReadinessGroup{Spec: v1alpha1.PodReadinessGroupSpec{ReadyWhen: given}}
		scheme.Default(group)
		if got := group.Spec; got.ReadyWhen != want || got.MinMember != nil {
			t.Errorf("%q became %+v, want %q", given, got, want)
		}
	}
}

func TestScopeDefaultsToTheWholeSet(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	got := &v1alpha1.JobSetRestart{}
	scheme.Default(got)
	if diff := cmp.Diff(v1alpha1.RestartScopeJobSet, got.Spec.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
}
