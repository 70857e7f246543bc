// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
)

var replicatedJobsPath = field.NewPath("spec", "replicatedJobs")

// scaleKind is what the scale of a JobSet is: the size of the Jobs of one replicatedJob.
func scaleKind(elastic bool) scale.Kind[*jobset.JobSet] {
	return scale.Kind[*jobset.JobSet]{
		Target:   func(js *jobset.JobSet) (*scale.Target, error) { return scaleTarget(js, elastic) },
		Validate: validateScale,
		Version:  jobsetv1alpha2.SchemeGroupVersion,
		Columns: [4]string{
			"name of the JobSet",
			"pods that each Job of the scaled replicatedJob should have",
			"pods that each of them has, as last observed",
			"creation time of the JobSet",
		},
	}
}

func validateScale(s *autoscalingv1.Scale) field.ErrorList {
	if s.Spec.Replicas >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), s.Spec.Replicas,
		"must be at least 1; suspend the JobSet to run no pods")}
}

// scaleTarget describes the size of the replicatedJob that is scaled. All its Jobs have the same size, and a Scale is
// about one of them: an autoscaler takes the metrics of the selected pods together and asks for so many pods as would
// bring them to its target. If the pods of all Jobs were selected, it would ask for as many pods in each Job as are needed
// in all of them.
func scaleTarget(js *jobset.JobSet, elastic bool) (*scale.Target, error) {
	rj, err := scaledReplicatedJob(js, elastic)
	if err != nil {
		return nil, err
	}
	pods := labels.Set{jobsetv1alpha2.JobSetNameKey: js.Name, jobsetv1alpha2.ReplicatedJobNameKey: rj.Name}
	if ptr.Deref(rj.Replicas, 1) > 1 {
		pods[jobsetv1alpha2.JobIndexKey] = "0"
	}
	selector, err := pods.AsValidatedSelector()
	if err != nil {
		return nil, fmt.Errorf("selecting the pods of replicatedJob %s: %w", rj.Name, err)
	}
	path := func(name string) fieldpath.Path {
		return fieldpath.MakePathOrDie("spec", "replicatedJobs", fieldpath.KeyByFields("name", rj.Name), "template", "spec", name)
	}
	job := &rj.Template.Spec
	return &scale.Target{
		Size: job.Parallelism, Current: currentSize(js, rj), Selector: selector.String(),
		Set:   func(size int32) { job.Parallelism, job.Completions = ptr.To(size), ptr.To(size) },
		Paths: []fieldpath.Path{path("parallelism"), path("completions")},
	}, nil
}

// maxNamedInErrors is how many replicatedJobs an error names.
const maxNamedInErrors = 10

// scaledReplicatedJob returns the replicatedJob that the scale of a set is about, or says why there is none. That is
// Invalid and not a Conflict: kubectl scale repeats a Conflict for five minutes, but only a change of the set helps here.
func scaledReplicatedJob(js *jobset.JobSet, enabled bool) (*jobset.ReplicatedJob, error) {
	if !enabled {
		return nil, absent(js, field.Forbidden(replicatedJobsPath,
			"cannot be scaled while the feature gate ElasticJobSet is off; ask an administrator of the cluster to turn it on"))
	}
	wanted, chosen := js.Annotations[jobsetv1alpha2.ScaleReplicatedJobKey]
	var elastic []*jobset.ReplicatedJob
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if !isElastic(rj) {
			continue
		}
		if chosen && rj.Name == wanted {
			return rj, nil
		}
		elastic = append(elastic, rj)
	}
	path := field.NewPath("metadata", "annotations").Key(jobsetv1alpha2.ScaleReplicatedJobKey)
	switch {
	case len(elastic) == 0:
		return nil, absent(js, field.Forbidden(replicatedJobsPath,
			"cannot be scaled because none is elastic; recreate the JobSet with completionMode Indexed "+
				"and completions equal to parallelism in the replicatedJob to scale"))
	case chosen:
		return nil, unscalable(js, field.Invalid(path, wanted, "must name one of the elastic replicatedJobs: "+namesOf(elastic)))
	case len(elastic) > 1:
		return nil, unscalable(js, field.Required(path, fmt.Sprintf(
			"must name one of the elastic replicatedJobs: %s; set it with `kubectl annotate jobset %s %s=%s`, "+
				"or change parallelism and completions of each with `kubectl edit jobset %s`",
			namesOf(elastic), js.Name, jobsetv1alpha2.ScaleReplicatedJobKey, elastic[0].Name, js.Name)))
	}
	return elastic[0], nil
}

// namesOf lists the names of the first few replicatedJobs.
func namesOf(list []*jobset.ReplicatedJob) string {
	var names []string
	for _, rj := range list[:min(len(list), maxNamedInErrors)] {
		names = append(names, rj.Name)
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// absent is the error of a set that has no scale; unscalable is the error of one whose scale needs the annotation first.
func absent(js *jobset.JobSet, err *field.Error) error {
	return scale.NewAbsent(jobset.Kind("JobSet"), js.Name, err)
}

func unscalable(js *jobset.JobSet, err *field.Error) error {
	return apierrors.NewInvalid(jobset.Kind("JobSet"), js.Name, field.ErrorList{err})
}

// isElastic reports whether the pods of a Job are as many as its completions, so that both can change together.
func isElastic(rj *jobset.ReplicatedJob) bool {
	job := &rj.Template.Spec
	return ptr.Deref(job.CompletionMode, "") == batchv1.IndexedCompletion && job.Parallelism != nil &&
		ptr.Equal(job.Parallelism, job.Completions)
}

// currentSize is the number of pods that a Job of the replicatedJob has. The status counts Jobs and not pods, so that it is
// the wanted size as soon as a Job has pods, also while it is still on its way to that size, and 0 before and after.
func currentSize(js *jobset.JobSet, rj *jobset.ReplicatedJob) int32 {
	for i := range js.Status.ReplicatedJobsStatus {
		if count := &js.Status.ReplicatedJobsStatus[i]; count.Name == rj.Name && (count.Active > 0 || count.Ready > 0) {
			return ptr.Deref(rj.Template.Spec.Parallelism, 1)
		}
	}
	return 0
}
