// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaled returns the replicatedJob that the scale of a set is about, or says why there is none.
func scaled(js *jobset.JobSet, enabled bool) (*jobset.ReplicatedJob, error) {
	if !enabled {
		return nil, unscalable(js, "the size of no JobSet can change while the feature gate ElasticJobSet is off; ask the administrator to turn it on")
	}
	var names []string
	var elastic []*jobset.ReplicatedJob
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		names = append(names, rj.Name)
		if isElastic(rj) {
			elastic = append(elastic, rj)
		}
	}
	const rule = "it is elastic if its template is Indexed, with completions that are set and equal its parallelism"
	if wanted, chosen := js.Annotations[jobsetv1alpha2.ScaleReplicatedJobKey]; chosen {
		for _, rj := range elastic {
			if rj.Name == wanted {
				return rj, nil
			}
		}
		for _, name := range names {
			if name == wanted {
				return nil, unscalable(js, "replicatedJob %q, which the annotation %s names, is not elastic: %s", wanted, jobsetv1alpha2.ScaleReplicatedJobKey, rule)
			}
		}
		return nil, unscalable(js, "the annotation %s names %q, which is no replicatedJob of the JobSet; name one of %s", jobsetv1alpha2.ScaleReplicatedJobKey, wanted, strings.Join(names, ", "))
	}
	switch len(elastic) {
	case 0:
		return nil, unscalable(js, "no replicatedJob is elastic: %s", rule)
	case 1:
		return elastic[0], nil
	}
	names = nil
	for _, rj := range elastic {
		names = append(names, rj.Name)
	}
	return nil, unscalable(js, "several replicatedJobs are elastic (%s); name one in the annotation %s", strings.Join(names, ", "), jobsetv1alpha2.ScaleReplicatedJobKey)
}

func unscalable(js *jobset.JobSet, format string, args ...any) error {
	return apierrors.NewConflict(jobset.Resource("jobsets"), js.Name, fmt.Errorf(format, args...))
}

// isElastic tells whether the pods of a Job are as many as its completions, so that both can change together.
func isElastic(rj *jobset.ReplicatedJob) bool {
	job := &rj.Template.Spec
	return ptr.Deref(job.CompletionMode, "") == batchv1.IndexedCompletion && job.Parallelism != nil && ptr.Equal(job.Parallelism, job.Completions)
}

func setSize(rj *jobset.ReplicatedJob, size int32) {
	rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = ptr.To(size), ptr.To(size)
}

// scaleOf describes the size of a replicatedJob. All its Jobs have the same size, and a Scale speaks of one of them: an
// autoscaler takes the metrics of the selected pods together and asks for so many pods as would bring them to its target.
// Were the pods of all Jobs selected, then it would ask for as many pods in each Job as are needed in all of them.
func scaleOf(js *jobset.JobSet, rj *jobset.ReplicatedJob) (*autoscalingv1.Scale, error) {
	pods := labels.Set{jobsetv1alpha2.JobSetNameKey: js.Name, jobsetv1alpha2.ReplicatedJobNameKey: rj.Name}
	if ptr.Deref(rj.Replicas, 1) > 1 {
		pods[jobsetv1alpha2.JobIndexKey] = "0"
	}
	selector, err := pods.AsValidatedSelector()
	if err != nil {
		return nil, fmt.Errorf("selecting the pods of replicatedJob %s: %w", rj.Name, err)
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: js.Name, Namespace: js.Namespace, UID: js.UID, ResourceVersion: js.ResourceVersion, CreationTimestamp: js.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: ptr.Deref(rj.Template.Spec.Parallelism, 1)},
		Status: autoscalingv1.ScaleStatus{Replicas: currentSize(js, rj), Selector: selector.String()},
	}, nil
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

// scaleOwners translates who owns the size between a JobSet and its Scale.
type scaleOwners struct {
	*managedfields.ScaleHandler
	parallelism, completions fieldpath.Path
}

func newScaleOwners(js *jobset.JobSet, rj *jobset.ReplicatedJob) scaleOwners {
	path := func(name string) fieldpath.Path {
		return fieldpath.MakePathOrDie("spec", "replicatedJobs", fieldpath.KeyByFields("name", rj.Name), "template", "spec", name)
	}
	o := scaleOwners{parallelism: path("parallelism"), completions: path("completions")}
	o.ScaleHandler = managedfields.NewScaleHandler(js.ManagedFields, servedVersion, managedfields.ResourcePathMappings{servedVersion.String(): o.parallelism})
	return o
}

// toParent returns the owners of the fields of the JobSet. One number of the Scale sets two fields: who owns the one owns
// the other too. Otherwise a manifest that leaves both to an autoscaler would remove the one that the handler does not
// know of.
func (o scaleOwners) toParent(scaleEntries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	entries, err := o.ToParent(scaleEntries)
	if err != nil {
		return nil, err
	}
	var out []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("reading the fields of manager %s: %w", entry.Manager, err)
		}
		if fields.Has(o.parallelism) {
			fields.Insert(o.completions)
		} else {
			fields = fields.Difference(fieldpath.NewSet(o.completions))
		}
		if fields.Empty() {
			continue
		}
		raw, err := fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("writing the fields of manager %s: %w", entry.Manager, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		out = append(out, entry)
	}
	return out, nil
}
