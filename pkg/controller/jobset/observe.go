// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// lagRetry is when to look again while an informer lags behind our own writes. Its event usually comes first.
const lagRetry = time.Second

// observe returns the set and its children as the caches have them. It returns nil for a set that is gone, and nil with
// a time to wait while the caches do not show what the last sync did.
func (c *Controller) observe(key cache.ObjectName) (*plan.Observed, time.Duration, error) {
	// What was read before the question could be older than the answer.
	if !c.writes.VersionsShown(key) {
		return nil, lagRetry, nil
	}
	js, err := c.jobSet(key)
	if err != nil {
		return nil, 0, err
	}
	if js == nil {
		c.writes.Forget(key)
		c.held.forget(key)
		c.turns.forget(key)
		c.slowStart.Forget(key)
		return nil, 0, nil
	}
	jobs, err := c.jobsOf(js)
	if err != nil {
		return nil, 0, err
	}
	if !c.writes.DeletionsShown(key, asObjects(jobs)) {
		return nil, lagRetry, nil
	}
	obs := &plan.Observed{
		JobSet: js, Jobs: jobs, Failures: c.failures.ofJobs(jobs), Claims: sets.New[string](),
		Noted: c.held.noted(key), CreateFrom: c.turns.noted(key),
		Now: metav1.NewTime(c.Clock.Now()), Gates: c.gates(),
	}
	if obs.ServiceExists, err = exists(c.informers.services, js.Namespace, helper.ServiceName(js)); err != nil {
		return nil, 0, err
	}
	for _, name := range helper.ClaimNames(js) {
		found, err := exists(c.informers.claims, js.Namespace, name)
		if err != nil {
			return nil, 0, err
		}
		if _, taken := c.takenClaims.Get(cache.NewObjectName(js.Namespace, name).String()); found || taken {
			obs.Claims.Insert(name)
		}
	}
	if plan.RestartsInPlace(js, obs.Gates) {
		if obs.Pods, err = c.podsOf(key); err != nil {
			return nil, 0, err
		}
	}
	return obs, 0, nil
}

// jobSet returns the cached set; nil if there is none.
func (c *Controller) jobSet(key cache.ObjectName) (*jobsetv1alpha2.JobSet, error) {
	obj, found, err := c.informers.jobSets.GetIndexer().GetByKey(key.String())
	if err != nil || !found {
		return nil, err
	}
	js, ok := obj.(*jobsetv1alpha2.JobSet)
	if !ok {
		return nil, fmt.Errorf("reading jobset %s: the cache holds a %T", key, obj)
	}
	return js, nil
}

func (c *Controller) jobsOf(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error) {
	objs, err := c.informers.jobs.GetIndexer().ByIndex(indexOwner, string(js.UID))
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

func (c *Controller) podsOf(key cache.ObjectName) ([]plan.Pod, error) {
	objs, err := c.informers.pods.GetIndexer().ByIndex(indexSet, key.String())
	if err != nil {
		return nil, fmt.Errorf("listing pods of jobset %s: %w", key, err)
	}
	pods := make([]plan.Pod, 0, len(objs))
	for _, obj := range objs {
		if pod, ok := obj.(*watchedPod); ok {
			pods = append(pods, pod.planned())
		}
	}
	return pods, nil
}

func exists(informer cache.SharedIndexInformer, namespace, name string) (bool, error) {
	_, found, err := informer.GetIndexer().GetByKey(cache.NewObjectName(namespace, name).String())
	return found, err
}

func asObjects(jobs []*batchv1.Job) []metav1.Object {
	out := make([]metav1.Object, 0, len(jobs))
	for _, job := range jobs {
		out = append(out, job)
	}
	return out
}
