// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
)

// gatherForJob is for how long changes of a set are gathered for each of its Jobs, beside what is usual. A pass takes
// about a microsecond for each Job, so that passes take a small part of the time however many Jobs there are.
const gatherForJob = 20 * time.Microsecond

// excludedByAffinity is a part of the scheduler's words about a pod whose affinity excludes some of the nodes.
const excludedByAffinity = "node affinity"

// observeChildren returns the set, and its Jobs and groups as the caches have them.
func (s *Syncer) observeChildren(ctx context.Context, key cache.ObjectName,
	js *jobsetv1alpha2.JobSet) (*plan.Observed, []consistency.Child, error) {
	jobs, err := s.deps.Caches.Jobs(js)
	if err != nil {
		return nil, nil, err
	}
	queue.Gather(ctx, time.Duration(len(jobs))*gatherForJob)
	grouped, shown := s.observeGroups(js), consistency.ChildrenOf(jobs)
	if grouped != nil {
		shown = append(shown, consistency.ChildrenOf(grouped.Objects)...)
	}
	return &plan.Observed{
		JobSet: js, Jobs: jobs, Deferred: s.deferred.Noted(key), CreateFrom: s.createFrom.Noted(key), RefusedSince: s.refusedSince.Noted(key),
		Now: metav1.NewTime(s.deps.Clock.Now()), Gates: s.gates(), KeepAttempts: s.keepsAttempts(),
		Priorities: s.deps.Caches.Priorities(), AvoidFailedNodes: s.deps.AvoidFailedNodes, MoveAfter: s.deps.MoveAfter, Grouped: grouped,
	}, shown, nil
}

// observe adds what else a decision is made on. Why a Job failed may be read from the API.
func (s *Syncer) observe(ctx context.Context, key cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	js := obs.JobSet
	if err := s.observeOthers(obs); err != nil {
		return false, err
	}
	if plan.RestoreMatters(*obs) {
		state, err := s.deps.Restore(ctx, js)
		if err != nil {
			return false, err
		}
		obs.Restored, obs.EditedSinceRestore, obs.ActedSinceRestore = state.Restored, state.Edited, state.Acted
	}
	obs.Mismatches, obs.RetryFeaturesAfter = s.mismatches(ctx, js)
	s.observeFailures(ctx, obs)
	if err := s.observePlacement(ctx, obs); err != nil {
		return false, err
	}
	// After everything that can fail: it is reported once only.
	obs.IgnoredQueue = kueue.IgnoredQueue(ctx, s.deps.Kueue, s.queueReported, js, plan.RunsDespiteQueue(js))
	obs.MaxBacklog, obs.Stalled = s.backlogs.reserve(key, js)
	return false, nil
}

// observeFailures adds why a Job failed, and the number of nodes if pods are to keep off some.
func (s *Syncer) observeFailures(ctx context.Context, obs *plan.Observed) {
	if job := plan.MissingCause(*obs); job != nil {
		if cause := s.deps.FirstCause(ctx, obs.JobSet.Namespace, *job); cause != nil {
			obs.Causes = map[types.UID]*jobsetv1alpha2.FailureCause{job.UID: cause}
		}
	}
	if plan.NodesMatter(*obs) && s.deps.Nodes != nil {
		obs.Nodes = s.deps.Nodes(ctx)
	}
}

// observeOthers adds what else than Jobs belongs to the set.
func (s *Syncer) observeOthers(obs *plan.Observed) (err error) {
	js := obs.JobSet
	if obs.ServiceExists, err = s.deps.Caches.HasService(cache.NewObjectName(js.Namespace, helper.ServiceName(js))); err != nil {
		return err
	}
	s.observeEndpoints(obs)
	obs.Claims = sets.New[string]()
	for _, claim := range helper.ClaimNames(js) {
		name := cache.NewObjectName(js.Namespace, claim)
		found, err := s.deps.Caches.HasClaim(name)
		if err != nil {
			return err
		}
		if _, taken := s.takenClaims.Get(name.String()); found || taken {
			obs.Claims.Insert(claim)
		}
	}
	if err := s.observeUnschedulable(obs); err != nil {
		return err
	}
	s.observeRefusedPods(obs)
	return s.observeInPlace(obs)
}

// observeEndpoints adds who writes the addresses of the Service.
func (s *Syncer) observeEndpoints(obs *plan.Observed) {
	if s.deps.Endpoints == nil {
		return
	}
	obs.OwnEndpoints = !obs.ServiceExists && s.deps.Endpoints.Serves(obs.JobSet)
	if reason, message, known := s.deps.Endpoints.Refusal(obs.JobSet); known {
		obs.EndpointsRefusal = &plan.EndpointsRefusal{Reason: reason, Message: message}
	}
}

// observeInPlace adds how far pods that restart where they are have come, and what failed in the first one.
func (s *Syncer) observeInPlace(obs *plan.Observed) error {
	if !plan.RestartsInPlace(obs.JobSet, obs.Gates) {
		return nil
	}
	obs.InPlace = s.deps.Caches.InPlace(obs.Jobs)
	job, pod := plan.FirstInPlace(*obs)
	if job == nil {
		return nil
	}
	failure, err := s.deps.Caches.PodFailure(cache.NewObjectName(obs.JobSet.Namespace, pod))
	if failure != nil {
		obs.FailedInPlace = helper.FirstCause(job.Name, batchv1.JobCondition{}, failure)
	}
	return err
}

// observeUnschedulable adds the pods that wait for a node, and remembers since when there are any.
func (s *Syncer) observeUnschedulable(obs *plan.Observed) error {
	key := cache.MetaObjectToName(obs.JobSet)
	pods, reason, err := s.deps.Caches.Unschedulable(key)
	since := children.Since(s.unschedulable, key, err == nil && pods > 0, obs.Now.Time)
	if since.IsZero() {
		return err
	}
	obs.Unschedulable = plan.Unschedulable{Pods: pods, Reason: reason, Since: since}
	if plan.ShutOutMatters(*obs) {
		obs.ShutOut, err = s.deps.Caches.ShutOut(key)
	}
	return err
}

var _ Caches = caches{}

// JobSet returns the cached set; nil if there is none.
func (c caches) JobSet(key cache.ObjectName) (*jobsetv1alpha2.JobSet, error) {
	return informers.ByKey[jobsetv1alpha2.JobSet](c.jobSets, key)
}

// Jobs returns the cached Jobs that the set controls.
func (c caches) Jobs(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error) {
	objs, err := c.jobs.ByIndex(indexOwner, string(js.UID))
	if err != nil {
		return nil, fmt.Errorf("listing jobs of jobset %s/%s: %w", js.Namespace, js.Name, err)
	}
	jobs := make([]*batchv1.Job, 0, len(objs))
	for _, obj := range objs {
		if job, ok := obj.(*batchv1.Job); ok && job.Namespace == js.Namespace {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// InPlace returns how far the pods of Jobs have come with restarting where they are, by the UID of the Job.
func (c caches) InPlace(jobs []*batchv1.Job) map[types.UID]plan.InPlace {
	out := map[types.UID]plan.InPlace{}
	for _, job := range jobs {
		if pods, found := c.inPlace.Of(job.UID); found {
			out[job.UID] = pods
		}
	}
	return out
}

// PodFailure returns what failed last in a pod; nil if nothing did, or if there is no such pod.
func (c caches) PodFailure(name cache.ObjectName) (*helper.PodFailure, error) {
	obj, err := c.pods.GetByKey(name.String())
	pod, ok := obj.(*watchedPod)
	if err != nil || !ok {
		return nil, err
	}
	return pod.Failure(), nil
}

// Unschedulable returns the number of pods of the set for which the scheduler finds no node, and its reason for one of them.
func (c caches) Unschedulable(key cache.ObjectName) (pods int, reason string, err error) {
	objs, err := c.pods.ByIndex(indexUnschedulable, key.String())
	if err != nil {
		return 0, "", fmt.Errorf("listing unschedulable pods of jobset %s: %w", key, err)
	}
	pods, reason = failures.FirstUnschedulable(objs)
	return pods, reason, nil
}

// ShutOut returns the UIDs of the Jobs with pods that find no node, some nodes being excluded by their affinity.
func (c caches) ShutOut(key cache.ObjectName) (sets.Set[types.UID], error) {
	objs, err := c.pods.ByIndex(indexUnschedulable, key.String())
	if err != nil {
		return nil, fmt.Errorf("listing unschedulable pods of jobset %s: %w", key, err)
	}
	jobs := sets.New[types.UID]()
	for _, obj := range objs {
		if pod, ok := obj.(*watchedPod); ok && strings.Contains(pod.Reason(), excludedByAffinity) {
			jobs.Insert(pod.JobUID())
		}
	}
	return jobs, nil
}

// anyPod returns whether the cache holds a pod that matches.
func (c caches) anyPod(match func(*failures.Pod) bool) bool {
	return failures.AnyPod(c.pods.List(), match)
}

// HasService returns whether the cache has a Service of the name.
func (c caches) HasService(name cache.ObjectName) (bool, error) { return has(c.services, name) }

// HasClaim returns whether the cache has a volume claim of the name.
func (c caches) HasClaim(name cache.ObjectName) (bool, error) { return has(c.claims, name) }

func has(informer *informers.Informer, name cache.ObjectName) (bool, error) {
	obj, err := informer.GetByKey(name.String())
	return obj != nil, err
}
