// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func newStrategy() sequentialjob.Strategy {
	return sequentialjob.NewStrategy(newScheme(), gates.Gates{}, func() time.Time { return noon })
}

// etl returns a sequence whose spec is the text.
func etl(t *testing.T, spec string) *batch.SequentialJob {
	t.Helper()
	versioned, hub := &v1alpha1.SequentialJob{}, &batch.SequentialJob{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: etl, namespace: default}\nspec: "+spec), versioned); err != nil {
		t.Fatal(err)
	}
	scheme := newScheme()
	scheme.Default(versioned)
	if err := scheme.Convert(versioned, hub, nil); err != nil {
		t.Fatal(err)
	}
	return hub
}

func TestWarnings(t *testing.T) {
	const claim = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	const mounts = "{steps: [{name: a, container: {image: a, volumeMounts: [{name: data, mountPath: /d}]}}, {name: b, container: {image: b, volumeMounts: [{name: data, mountPath: /d}]}}], template: {spec: {volumes: [{name: data, %s}]}}}"
	job := func(spec string) string {
		return "job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}], " + spec + "}}}}"
	}
	cases := map[string]struct {
		spec string
		want []string
	}{
		"nothing is wrong": {spec: "{containers: [{image: a}, {image: b}]}"},
		"containers share a claim, and run where the template says": {
			spec: strings.Replace(mounts, "%s", "persistentVolumeClaim: {claimName: data}", 1),
		},
		"containers do not share an emptyDir": {
			spec: strings.Replace(mounts, "%s", "emptyDir: {}", 1),
			want: []string{`spec.template.spec.volumes[0]: 2 steps mount "data", but each pod gets a volume of its own, so that a step does not see the files of the one before; use a persistentVolumeClaim to pass files on`},
		},
		"Jobs on the same nodes share a claim": {
			spec: "{steps: [{name: a, " + job(claim) + "}, {name: b, " + job(claim) + "}]}",
		},
		"Jobs on different nodes share a claim": {
			spec: "{steps: [{name: a, " + job(claim) + "}, {name: b, " + job(claim+", nodeSelector: {gpu: a100}") + "}, {name: c, " + job(claim+", nodeName: n") + "}]}",
			want: []string{`spec.steps[1].job.spec.template.spec.volumes[0]: the steps "a" and "b" use the claim "data", but select different nodes; if its access mode is ReadWriteOnce, the pods wait until the volume is detached from the other node, and never start if it cannot be attached to theirs`},
		},
		"what no step uses": {
			spec: "{steps: [{name: a, " + job("") + "}], template: {spec: {nodeSelector: {a: b}}}, backoffLimit: 1}",
			want: []string{"spec.template: has no effect, because no step is a container", "spec.backoffLimit: has no effect, because no step is a container; set it in the templates of the Jobs"},
		},
		"a time to live of a step that is not the last": {
			spec: "{steps: [{name: a, job: {spec: {ttlSecondsAfterFinished: 60, template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}}}, {name: b, job: {spec: {ttlSecondsAfterFinished: 60, template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}}}]}",
			want: []string{"spec.steps[0].job.spec.ttlSecondsAfterFinished: counts from the end of the step; 60 seconds later its pods and logs are deleted, even while later steps run; leave it out to keep them until the sequence is deleted"},
		},
		"a Job that somebody has to complete": {
			spec: "{steps: [{name: a, job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}}}]}",
			want: []string{"spec.steps[0].job.spec.template.spec.containers[0].image: not set; Jobs are rejected unless an admission webhook adds it"},
		},
		"a JobSet without replicatedJobs": {
			spec: "{steps: [{name: a, jobSet: {spec: {}}}]}",
			want: []string{"spec.steps[0].jobSet.spec.replicatedJobs: no Jobs are created, and the set never completes, because it has no replicatedJobs; they cannot be added later"},
		},
		"a JobSet": {
			spec: "{steps: [{name: a, jobSet: {spec: {activeDeadlineSeconds: 5, replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}]}}}]}",
			want: []string{
				"spec.steps[0].jobSet.spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: not set; Jobs are rejected unless an admission webhook adds it",
				"spec.steps[0].jobSet.spec.activeDeadlineSeconds: ignored, because the feature gate JobSetActiveDeadlineSeconds of the API server is off",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sj := etl(t, tc.spec)
			if diff := cmp.Diff(tc.want, newStrategy().WarningsOnCreate(t.Context(), sj)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := newStrategy().WarningsOnUpdate(t.Context(), sj, sj); len(got) > 0 {
				t.Errorf("warnings are repeated: %q", got)
			}
		})
	}
}

func TestWarningOfLongNames(t *testing.T) {
	sj := etl(t, "{containers: [{image: a}]}")
	for length, want := range map[int]string{
		55: "", 56: `metadata.name: names of Jobs such as "` + strings.Repeat("a", 56) + `-0" have 58 of at most 63 characters; use a shorter name`,
	} {
		sj.Name = strings.Repeat("a", length)
		if got := strings.Join(newStrategy().WarningsOnCreate(t.Context(), sj), "\n"); got != want {
			t.Errorf("%d characters: got %q, want %q", length, got, want)
		}
	}
}
