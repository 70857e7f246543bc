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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// gatherForJob is for how long changes of a set are gathered for each of its Jobs, beside what is usual. A pass takes
// about a microsecond for each Job, so that passes take a small part of the time however many Jobs there are.
const gatherForJob = 20 * time.Microsecond

// excludedByAffinity is a part of the scheduler's words about a pod whose affinity excludes some of the nodes.
const excludedByAffinity = "node affinity"

// Children returns the set, and its Jobs and groups as the caches have them.
func (k loopKind) Children(ctx context.Context, key cache.ObjectName,
	js *jobsetv1alpha2.JobSet) (*plan.Observed, []consistency.Child, error) {
	jobs, err := k.deps.Caches.Jobs(js)
	if err != nil {
		return nil, nil, err
	}
	queue.Gather(ctx, time.Duration(len(jobs))*gatherForJob)
	grouped, shown := k.observeGroups(js), consistency.ChildrenOf(jobs)
	if grouped != nil {
		shown = append(shown, consistency.ChildrenOf(grouped.Objects)...)
	}
	return &plan.Observed{
		JobSet: js, Jobs: jobs, Deferred: k.deferred.Noted(key), CreateFrom: k.createFrom.Noted(key), RefusedSince: k.refusedSince.Noted(key),
		Now: metav1.NewTime(k.deps.Clock.Now()), Gates: k.gates(), KeepAttempts: k.keepsAttempts(),
		Priorities: k.deps.Caches.Priorities(), AvoidFailedNodes: k.deps.AvoidFailedNodes, MoveAfter: k.deps.MoveAfter, Grouped: grouped,
	}, shown, nil
}

// Complete adds what else caches have.
func (k loopKind) Complete(ctx context.Context, key cache.ObjectName, obs *plan.Observed) (lags bool, err error) {
	if err := k.observeOthers(obs); err != nil {
		return false, err
	}
	if obs.Gates.ExclusivePlacement && obs.JobSet.Status.Placement != nil {
		if obs.Waiting, err = k.deps.Caches.Waiting(key); err != nil {
			return false, err
		}
	}
	obs.Mismatches, obs.RetryFeaturesAfter = k.mismatches(ctx, obs.JobSet)
	obs.MaxBacklog, obs.Stalled = k.backlogs.reserve(key, obs.JobSet)
	return false, nil
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
	return nil
}

// observeEndpoints adds who writes the addresses of the Service.
func (s *Syncer) observeEndpoints(obs *plan.Observed) {
	if s.deps.Endpoints == nil {
		return
	}
	obs.OwnEndpoints = !obs.ServiceExists && s.deps.Endpoints.Serves(obs.JobSet)
	if reason, message, known := s.deps.Endpoints.Refusal(obs.JobSet); known {
		obs.EndpointsRefusal = &plan.Refusal{Reason: reason, Message: message}
	}
}

// observeUnschedulable adds the pods that wait for a node, and remembers since when there are any.
func (s *Syncer) observeUnschedulable(obs *plan.Observed) error {
	key := cache.MetaObjectToName(obs.JobSet)
	pods, reason, err := s.deps.Caches.Unschedulable(key)
	if since := children.Since(s.unschedulable, key, err == nil && pods > 0, obs.Now.Time); !since.IsZero() {
		obs.Unschedulable = plan.Unschedulable{Pods: pods, Reason: reason, Since: since}
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
func (c caches) InPlace(jobs []*batchv1.Job) map[types.UID]planinplace.State {
	out := map[types.UID]planinplace.State{}
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
