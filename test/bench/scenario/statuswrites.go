// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// manyParts is the number of replicatedJobs of the larger set of status-writes.
const manyParts = 100

// statusWrites compares two ways to store one changed count of a status: the whole set in protobuf, as
// jobset-controller does, and a JSON patch that names the count and the version of the set.
func statusWrites(ctx context.Context, r *runner) error {
	return r.each(ctx, unwatched, func(ctx context.Context, s *space) error {
		for _, set := range []*jobsetv1alpha2.JobSet{typicalSet("typical", s.name), largeSet(s.name)} {
			name := set.Name
			stored, err := s.storeCounts(ctx, set)
			if err != nil {
				return err
			}
			if stored, err = s.repeatStatus(ctx, name+" set: whole in protobuf", stored, s.putStatus); err != nil {
				return err
			}
			if _, err = s.repeatStatus(ctx, name+" set: JSON patch", stored, s.patchStatus); err != nil {
				return err
			}
		}
		return nil
	})
}

// largeSet is a typical set with many replicatedJobs.
func largeSet(namespace string) *jobsetv1alpha2.JobSet {
	js := typicalSet("large", namespace)
	js.Spec.SuccessPolicy = nil
	workers := js.Spec.ReplicatedJobs[1]
	js.Spec.ReplicatedJobs = nil
	for i := range manyParts {
		workers.Name = fmt.Sprint("workers-", i)
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *workers.DeepCopy())
	}
	return js
}

// storeCounts creates a set and a status as a set has while it runs.
func (s *space) storeCounts(ctx context.Context, js *jobsetv1alpha2.JobSet) (*jobsetv1alpha2.JobSet, error) {
	if err := s.createSet(ctx, js); err != nil {
		return nil, err
	}
	stored, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Get(ctx, js.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	now := metav1.Now()
	stored.Status.Conditions = []metav1.Condition{{
		Type: jobsetv1alpha2.JobSetSuspended, Status: metav1.ConditionFalse, Reason: "ResumeJobs", Message: "jobset is resumed", LastTransitionTime: now,
	}}
	stored.Status.Attempts = []jobsetv1alpha2.Attempt{{
		Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: ptr.To(metav1.NewMicroTime(now.Time)),
	}}
	for i := range stored.Spec.ReplicatedJobs {
		stored.Status.ReplicatedJobsStatus = append(stored.Status.ReplicatedJobsStatus, jobsetv1alpha2.ReplicatedJobStatus{Name: stored.Spec.ReplicatedJobs[i].Name, Active: 1})
	}
	return s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

// repeatStatus writes one count again and again, one request after the other. It returns the set as it is stored then.
func (s *space) repeatStatus(ctx context.Context, name string, js *jobsetv1alpha2.JobSet, write func(context.Context, *jobsetv1alpha2.JobSet, int32) (*jobsetv1alpha2.JobSet, int, error)) (*jobsetv1alpha2.JobSet, error) {
	var spent []float64
	var size int
	phase, err := s.measure(ctx, name, func(ctx context.Context) error {
		for i := range s.Sizes.Writes {
			begin := time.Now()
			next, bytes, err := write(ctx, js, int32(i%2))
			if err != nil {
				return err
			}
			spent = append(spent, millis(time.Since(begin)))
			js, size = next, bytes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	phase.Add("p50", report.UnitMillis, report.Percentile(spent, 50))
	phase.Add("p99", report.UnitMillis, report.Percentile(spent, 99))
	phase.Add("bytes sent with each", report.UnitBytes, float64(size))
	return js, nil
}

func (s *space) putStatus(ctx context.Context, js *jobsetv1alpha2.JobSet, ready int32) (*jobsetv1alpha2.JobSet, int, error) {
	js.Status.ReplicatedJobsStatus[0].Ready = ready
	body, err := js.Marshal()
	if err != nil {
		return nil, 0, err
	}
	next, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).UpdateStatus(ctx, js, metav1.UpdateOptions{})
	return next, len(body), err
}

func (s *space) patchStatus(ctx context.Context, js *jobsetv1alpha2.JobSet, ready int32) (*jobsetv1alpha2.JobSet, int, error) {
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": js.ResourceVersion},
		{"op": "add", "path": "/status/replicatedJobsStatus/0/ready", "value": ready},
	})
	if err != nil {
		return nil, 0, err
	}
	next, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Patch(ctx, js.Name, types.JSONPatchType, body, metav1.PatchOptions{}, "status")
	return next, len(body), err
}
