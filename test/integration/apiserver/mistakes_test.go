// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/mistakes"
)

// TestNoJobHasTheMistakesInTemplates asks the main API server for the Jobs of each template that is refused or warned of: one
// that it accepts would be refused without a reason. Fields that do not exist in its version are no mistake here.
func TestNoJobHasTheMistakesInTemplates(t *testing.T) {
	tier.OnRequest(t, "asks kube-apiserver about each template")
	jobs := plane.Kube.BatchV1().Jobs(newEnv(t, nil, plane.Config).namespace)
	base, topics, err := mistakes.Read(filepath.Join("..", "..", "..", "pkg", "apiserver", "testdata", "mistakes"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, topic := range topics {
		if topic.Name != "4_templates" {
			continue
		}
		for _, m := range append(topic.Mistakes, mistakes.Mistake{Name: "none"}) {
			checked++
			body, err := m.Apply(base)
			js := &jobsetv1alpha2.JobSet{}
			if err == nil {
				err = json.Unmarshal(body, js)
			}
			if err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			var refusal error
			for i := range js.Spec.ReplicatedJobs {
				if _, err := jobs.Create(t.Context(), jobOf(&js.Spec.ReplicatedJobs[i]), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
					refusal = err
				}
			}
			if refused, want := refusal != nil, m.Name != "none"; refused != want {
				t.Errorf("%s: the main API server says %v", m.Name, refusal)
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d templates were checked", checked)
	}
}

// jobOf returns a Job as the controller makes it, with the defaults of a created set.
func jobOf(rj *jobsetv1alpha2.ReplicatedJob) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: *rj.Template.ObjectMeta.DeepCopy(), Spec: *rj.Template.Spec.DeepCopy()}
	job.Name = "train-" + rj.Name + "-0"
	if job.Spec.CompletionMode == nil {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if job.Spec.Template.Spec.RestartPolicy == "" {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	return job
}
