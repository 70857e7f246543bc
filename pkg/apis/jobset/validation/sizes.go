// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// Bounds of the lists of a JobSet, and of what they lead to.
const (
	MaxReplicatedJobs       = 1000
	MaxDependencies         = 5
	MaxTargets              = 1000
	MaxRules                = 1000
	MaxReasons              = 100
	MaxPatterns             = 64 // of all rules together
	MaxVolumeClaimPolicies  = 50
	MaxVolumeClaimTemplates = 50 // of each policy
	MaxObjects              = 20_000
	MaxJobs                 = 100_000
	MaxPods                 = 2_000_000
	MaxConditions           = 100
)

// size is how many there are of something that is bounded, when it is over its bound.
type size struct {
	count int64
	err   *field.Error
}

// sizes collects by path and kind what is over its bound. What is below a list that is too long is not looked at.
type sizes struct {
	over  map[string]size
	order []string
}

func (s *sizes) list(path *field.Path, count, limit int) (within bool) {
	if count <= limit {
		return true
	}
	s.add("", int64(count), field.TooMany(path, count, limit))
	return false
}

func (s *sizes) sum(path *field.Path, count, limit int64, format string) {
	if count > limit {
		s.add(format, count, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(format, limit, count)))
	}
}

func (s *sizes) add(kind string, count int64, err *field.Error) {
	if s.over == nil {
		s.over = map[string]size{}
	}
	key := err.Field + ": " + kind
	s.over[key] = size{count: count, err: err}
	s.order = append(s.order, key)
}

// grown returns what is over its bound and was not as large in the stored object, in the order in which it was found. The
// stored object is measured only if there is something.
func (s *sizes) grown(measureStored func() *sizes) field.ErrorList {
	if len(s.order) == 0 {
		return nil
	}
	stored := measureStored()
	var errs field.ErrorList
	for _, key := range s.order {
		now := s.over[key]
		if was, ok := stored.over[key]; !ok || was.count < now.count {
			errs = append(errs, now.err)
		}
	}
	return errs
}

// specSizes measures a spec. It is cheap whatever the spec holds, so that it comes before every other check.
func specSizes(spec *jobset.JobSetSpec) *sizes {
	s, path := &sizes{}, field.NewPath("spec")
	s.replicatedJobs(spec, path.Child("replicatedJobs"))
	if policy := spec.SuccessPolicy; policy != nil {
		s.list(path.Child("successPolicy", "targetReplicatedJobs"), len(policy.TargetReplicatedJobs), MaxTargets)
	}
	if policy := spec.FailurePolicy; policy != nil {
		s.rules(policy.Rules, path.Child("failurePolicy", "rules"))
	}
	policies := path.Child("volumeClaimPolicies")
	if s.list(policies, len(spec.VolumeClaimPolicies), MaxVolumeClaimPolicies) {
		for i := range spec.VolumeClaimPolicies {
			s.list(policies.Index(i).Child("templates"), len(spec.VolumeClaimPolicies[i].Templates), MaxVolumeClaimTemplates)
		}
	}
	s.sum(path, objects(reflect.ValueOf(spec).Elem()), MaxObjects,
		"must have at most %d objects in all of its lists together, such as containers, variables and volumes; it has %d")
	return s
}

func (s *sizes) replicatedJobs(spec *jobset.JobSetSpec, path *field.Path) {
	if !s.list(path, len(spec.ReplicatedJobs), MaxReplicatedJobs) {
		return
	}
	for i := range spec.ReplicatedJobs {
		s.list(path.Index(i).Child("dependsOn"), len(spec.ReplicatedJobs[i].DependsOn), MaxDependencies)
	}
	jobs, pods := totals(spec)
	s.sum(path, jobs, MaxJobs, "must not result in more than %d Jobs: the replicas of all replicatedJobs add up to %d")
	s.sum(path, pods, MaxPods, "must not result in more than %d pods: replicas times parallelism of all replicatedJobs add up to %d")
}

func (s *sizes) rules(rules []jobset.FailurePolicyRule, path *field.Path) {
	if !s.list(path, len(rules), MaxRules) {
		return
	}
	patterns := 0
	for i := range rules {
		patterns += len(rules[i].OnJobFailureMessagePatterns)
		s.list(path.Index(i).Child("targetReplicatedJobs"), len(rules[i].TargetReplicatedJobs), MaxTargets)
		s.list(path.Index(i).Child("onJobFailureReasons"), len(rules[i].OnJobFailureReasons), MaxReasons)
	}
	s.sum(path, int64(patterns), MaxPatterns, "must have at most %d onJobFailureMessagePatterns in all rules together; it has %d")
}

// totals counts the Jobs and the pods of a set. What validateReplicas refuses by itself is left out.
func totals(spec *jobset.JobSetSpec) (jobs, pods int64) {
	for i := range spec.ReplicatedJobs {
		rj := &spec.ReplicatedJobs[i]
		count, parallelism := int64(replicas(rj)), int64(ptr.Deref(rj.Template.Spec.Parallelism, 1))
		if count < 0 || count*parallelism > math.MaxInt32 {
			continue
		}
		jobs += count
		pods += count * max(parallelism, 0)
	}
	return jobs, pods
}

// objects counts the items of all lists of objects below a value.
func objects(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return objects(v.Elem())
		}
	case reflect.Struct:
		var n int64
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // exported: what is sent
				n += objects(f)
			}
		}
		return n
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return 0
		}
		n := int64(v.Len())
		for i := range v.Len() {
			n += objects(v.Index(i))
		}
		return n
	}
	return 0
}

// statusSizes measures a status. There are as many entries of replicatedJobsStatus as replicatedJobs, also of a set that is
// older than their bound.
func statusSizes(js *jobset.JobSet) *sizes {
	s, path := &sizes{}, field.NewPath("status")
	status := &js.Status
	s.list(path.Child("conditions"), len(status.Conditions), MaxConditions)
	statuses := path.Child("replicatedJobsStatus")
	if s.list(statuses, len(status.ReplicatedJobsStatus), max(MaxReplicatedJobs, len(js.Spec.ReplicatedJobs))) {
		for i := range status.ReplicatedJobsStatus {
			p := statuses.Index(i)
			s.list(p.Child("jobRestarts"), len(status.ReplicatedJobsStatus[i].JobRestarts), jobset.MaxCountedJobs)
			s.list(p.Child("jobRestartsCountTowardsMax"), len(status.ReplicatedJobsStatus[i].JobRestartsCountTowardsMax), jobset.MaxCountedJobs)
		}
	}
	s.list(path.Child("attempts"), len(status.Attempts), jobset.MaxAttempts)
	return s
}
