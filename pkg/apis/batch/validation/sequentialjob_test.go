// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

var options = validation.Options{Default: func(spec *jobset.JobSetSpec) {
	if spec.SuccessPolicy == nil {
		spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: jobset.OperatorAll}
	}
}}

// parse returns the sequence of a YAML text, with the defaults.
func parse(t *testing.T, text string) *batch.SequentialJob {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	versioned, hub := &v1alpha1.SequentialJob{}, &batch.SequentialJob{}
	if err := yaml.UnmarshalStrict([]byte(text), versioned); err != nil {
		t.Fatal(err)
	}
	scheme.Default(versioned)
	if err := scheme.Convert(versioned, hub, nil); err != nil {
		t.Fatal(err)
	}
	return hub
}

// etl returns a sequence whose spec is the text.
func etl(t *testing.T, spec string) *batch.SequentialJob {
	t.Helper()
	return parse(t, "metadata: {name: etl, namespace: default}\nspec: "+spec)
}

// messages is what users read about errors.
func messages(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func TestSequences(t *testing.T) {
	const one = "containers: [{name: a, image: a}]"
	const pod = "template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}"
	cases := map[string]struct {
		spec string
		want []string
	}{
		"a container":     {spec: "{containers: [{image: a}]}"},
		"without a thing": {spec: "{}", want: []string{"spec.containers: Required value: at least one container must be specified, or else steps"}},
		"no containers": {
			spec: "{containers: [], template: {spec: {nodeSelector: {a: b}}}}",
			want: []string{"spec.containers: Required value: at least one container must be specified, or else steps"},
		},
		"both forms": {
			spec: "{" + one + ", steps: [{name: b, container: {image: b}}]}",
			want: []string{"spec.steps: Forbidden: must not be set together with containers: make the containers steps, too"},
		},
		"names": {
			spec: "{containers: [{name: A, image: a}, {name: b, image: b}, {name: b, image: c}, {name: x.y, image: d}]}",
			want: []string{
				`spec.containers[0].name: Invalid value: "A": must have at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit`,
				`spec.containers[2].name: Duplicate value: "b": must be unique in the list: remove or rename one of the two`,
				`spec.containers[3].name: Invalid value: "x.y": must have at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit`,
			},
		},
		"a step without a name": {
			spec: "{steps: [{container: {name: a, image: a}}]}",
			want: []string{"spec.steps[0].name: Required value: must be set: it identifies the step"},
		},
		"containers of steps may have one name": {spec: "{steps: [{name: a, container: {name: main, image: a}}, {name: b, container: {name: main, image: a}}]}"},
		"nothing and two things at a step": {
			spec: "{steps: [{name: a}, {name: b, container: {image: b}, job: {spec: {" + pod + "}}}]}",
			want: []string{
				"spec.steps[0]: Required value: must have exactly one of container, job and jobSet",
				"spec.steps[1]: Invalid value: must have exactly one of container, job and jobSet, but has container and job",
			},
		},
		"what a Job of a container would be refused for": {
			spec: `{containers: [
  {name: a},
  {name: b, image: b, env: [{name: X, value: "1"}, {name: X, value: "2"}], volumeMounts: [{name: data, mountPath: /data}]},
  {name: c, image: " c", resources: {requests: {cpu: 2, nvidia.com/gpu: 1}, limits: {cpu: 1}}, ports: [{containerPort: 70000}], imagePullPolicy: Maybe}]}`,
			want: []string{
				`spec.containers[1].env[1]: Duplicate value: "X": must be unique in the list: remove or rename one of the two`,
				"spec.containers[2].ports[0].containerPort: Invalid value: 70000: must be from 1 to 65535",
				`spec.containers[2].resources.requests[cpu]: Invalid value: "2": must not be greater than the limit, 1`,
				"spec.containers[0].image: Required value: must be set",
				`spec.containers[1].volumeMounts[0].name: Invalid value: "data": must be the name of a volume of the pod: add it, or correct the name`,
				`spec.containers[2].image: Invalid value: " c": must not begin or end with a space`,
				`spec.containers[2].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"`,
				"spec.containers[2].resources.limits[nvidia.com/gpu]: Required value: must be equal to the request, 1, because nvidia.com/gpu cannot be overcommitted",
			},
		},
		"a container of a step": {
			spec: "{steps: [{name: a, job: {spec: {" + pod + "}}}, {name: b, container: {image: ''}}]}",
			want: []string{"spec.steps[1].container.image: Required value: must be set"},
		},
		"a volume of the template": {spec: "{containers: [{image: a, volumeMounts: [{name: data, mountPath: /data}]}], template: {spec: {volumes: [{name: data, emptyDir: {}}]}}}"},
		"a template": {
			spec: `{` + one + `, template: {metadata: {labels: {"a b": c}}, spec: {restartPolicy: Always, containers: [{name: x, image: x}],
  initContainers: [{name: a, image: i}, {name: i}], nodeSelector: {a: "b c"}, volumes: [{name: v, emptyDir: {}, hostPath: {path: /}}]}}}`,
			want: []string{
				"spec.template.spec.containers: Forbidden: must be empty: each step has a container of its own; make these containers steps",
				`spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"`,
				`spec.template.metadata.labels: Invalid value: "a b": keys must have at most 63 letters, digits, '-', '_' and '.', after an optional domain, such as example.com/team`,
				`spec.template.spec.nodeSelector[a]: Invalid value: "b c": must have at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`,
				"spec.template.spec.volumes[0]: Invalid value: must have one source, but has hostPath and emptyDir",
				`spec.template.spec.initContainers[0].name: Duplicate value: "a": must not be the name of a container of the pod: rename one of the two`,
				"spec.template.spec.initContainers[1].image: Required value: must be set",
			},
		},
		"a template without containers of its own": {spec: "{" + one + ", template: {spec: {restartPolicy: OnFailure, initContainers: [{name: i, image: i, restartPolicy: Always}]}}}"},
		"a Job": {
			spec: `{steps: [{name: a, job: {spec: {backoffLimit: -1, template: {spec: {containers: [{name: main, image: a}]}}}}}, {name: b, job: {}}]}`,
			want: []string{
				"spec.steps[0].job.spec.template.spec.restartPolicy: Required value: must be Never or OnFailure, because Jobs have no default",
				"spec.steps[0].job.spec.backoffLimit: Invalid value: -1: must be 0 or more",
				"spec.steps[1].job: Required value: must be set: it describes the Jobs, with their containers in spec.template.spec.containers",
			},
		},
		"a JobSet": {
			spec: `{steps: [{name: a, container: {image: a}}, {name: b, jobSet: {metadata: {labels: {"a b": c}}, spec: {ttlSecondsAfterFinished: -1, replicatedJobs: [
  {name: w, replicas: -1, template: {spec: {` + pod + `}}}, {name: W, template: {spec: {` + pod + `}}}]}}}]}`,
			want: []string{
				`spec.steps[1].jobSet.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				"spec.steps[1].jobSet.spec.replicatedJobs[0].replicas: Invalid value: -1: must be 0 or more",
				`spec.steps[1].jobSet.spec.replicatedJobs[1].name: Invalid value: "W": must consist of lower-case letters, digits and '-', because Jobs and pods are named after it`,
				"spec.steps[1].jobSet.spec.ttlSecondsAfterFinished: Invalid value: -1: must be 0 or more; leave it out to keep the set",
			},
		},
		"a JobSet without Jobs": {
			spec: "{steps: [{name: a, jobSet: {spec: {suspend: false}}}]}",
			want: []string{"spec.steps[0].jobSet.spec.replicatedJobs: Required value: must have at least one replicatedJob, so that the step does something"},
		},
		"numbers and words": {
			spec: "{" + one + ", backoffLimit: -1, activeDeadlineSeconds: 0, ttlSecondsAfterFinished: -1, updateStrategy: {type: Sometimes}, managedBy: x}",
			want: []string{
				"spec.backoffLimit: Invalid value: -1: must be 0 or more; leave it out for the default of Jobs",
				"spec.activeDeadlineSeconds: Invalid value: 0: must be 1 or more; leave it out for no limit",
				"spec.ttlSecondsAfterFinished: Invalid value: -1: must be 0 or more; leave it out to keep the sequence",
				`spec.managedBy: Invalid value: "x": must be a DNS name and a path, such as example.com/controller`,
				`spec.updateStrategy.type: Unsupported value: "Sometimes": supported values: "Continue", "Restart", "Forbid"`,
			},
		},
		"another controller may complete its Jobs": {spec: "{managedBy: example.com/c, containers: [{name: a}]}"},
		"101 steps": {
			spec: "{containers: [" + strings.Repeat("{image: a},", 101) + "]}",
			want: []string{"spec.containers: Too many: 101: must have at most 100 items"},
		},
		"too many objects": {
			spec: "{containers: [" + strings.Repeat("{image: a, env: ["+strings.Repeat("{name: A},", 2000)+"]},", 10) + "]}",
			want: []string{"spec: Invalid value: must have at most 20000 objects in all of its lists together, such as steps, variables and volumes; it has 20010"},
		},
		"too many variables of a container": {
			spec: "{steps: [{name: a, container: {image: a, env: [" + strings.Repeat("{name: A},", 2001) + "]}}]}",
			want: []string{"spec.steps[0].container.env: Too many: 2001: must have at most 2000 items"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := etl(t, tc.spec)
			before := sj.DeepCopy()
			if diff := cmp.Diff(tc.want, messages(validation.ValidateSequentialJobCreate(sj, options))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, sj); diff != "" {
				t.Errorf("validation changed its argument:\n%s", diff)
			}
		})
	}
}

func TestNamesOfSequences(t *testing.T) {
	const pod = "template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}"
	jobSet := "{steps: [{name: a, jobSet: {spec: {replicatedJobs: [{name: workers, replicas: 10, template: {spec: {completions: 100, parallelism: 100, " + pod + "}}}]}}}]}"
	indexed := "{steps: [{name: a, job: {spec: {completionMode: Indexed, completions: 1000, parallelism: 1, " + pod + "}}}]}"
	containers := "{containers: [" + strings.Repeat("{image: a},", 11) + "]}"
	cases := map[string]struct{ name, spec, want string }{
		"a name with dots":                 {name: "1.etl", spec: containers},
		"60 characters for 11 Jobs":        {name: strings.Repeat("a", 60), spec: containers},
		"61 characters for 11 Jobs":        {name: strings.Repeat("a", 61), spec: containers, want: "must have at most 60 characters, because names of Jobs have at most 63"},
		"pods with an index":               {name: strings.Repeat("a", 57), spec: indexed},
		"longer pods with an index":        {name: strings.Repeat("a", 58), spec: indexed, want: "must have at most 57 characters, because names of pods have at most 63"},
		"dots for pods with an index":      {name: "a.b", spec: indexed, want: "must consist of lower-case letters, digits and '-', because pods with an index are named after it"},
		"a JobSet":                         {name: strings.Repeat("a", 42), spec: jobSet},
		"a longer name for a JobSet":       {name: strings.Repeat("a", 43), spec: jobSet, want: "must have at most 42 characters, because names of pods have at most 63"},
		"a digit at the start of a JobSet": {name: "1a", spec: jobSet, want: "must consist of lower-case letters, digits and '-', beginning with a letter, because the Jobs and pods of JobSets are named after it"},
		"what is no name at all":           {name: "A", spec: containers, want: "must consist of lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := etl(t, tc.spec)
			sj.Name = tc.name
			var got []string
			for _, err := range validation.ValidateSequentialJobCreate(sj, options) {
				if err.Field == "metadata.name" {
					got = append(got, err.Detail)
				}
			}
			if tc.want == "" && got == nil {
				return
			}
			if len(got) != 1 || tc.want == "" || !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
