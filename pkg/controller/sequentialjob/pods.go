// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// indexUnschedulable is the index of those pods for which the scheduler finds no node, by the name of the sequence that is on them.
const indexUnschedulable = "unschedulable"

// watchedPod is what the cache keeps of a pod of a sequence.
type watchedPod struct {
	failures.Pod
	// sequence is the name of the SequentialJob, as a rule a part of the memory of the name.
	sequence string
}

func newWatchedPod(pod *corev1.Pod) *watchedPod {
	kept := &watchedPod{Pod: failures.NewPod(pod), sequence: pod.Labels[batchv1alpha1.SequentialJobNameKey]}
	if n := len(kept.sequence); len(kept.Name) >= n && kept.Name[:n] == kept.sequence {
		kept.sequence = kept.Name[:n]
	}
	return kept
}

func (p *watchedPod) key() cache.ObjectName {
	return cache.NewObjectName(p.Namespace.Value(), p.sequence)
}

// unschedulableOf indexes those pods for which the scheduler finds no node.
func unschedulableOf(obj any) ([]string, error) {
	if pod, ok := obj.(*watchedPod); ok && pod.Unschedulable() {
		return []string{pod.key().String()}, nil
	}
	return nil, nil
}

// Unschedulable returns the number of pods of the sequence for which the scheduler finds no node, and its reason for the first
// one in alphabetical order.
func (c caches) Unschedulable(sj *batchv1alpha1.SequentialJob) (pods int, reason string, err error) {
	key := cache.MetaObjectToName(sj)
	objs, err := c.pods.ByIndex(indexUnschedulable, key.String())
	if err != nil {
		return 0, "", fmt.Errorf("listing unschedulable pods of sequentialjob %s: %w", key, err)
	}
	pods, reason = failures.FirstUnschedulable(objs)
	return pods, reason, nil
}

// anyPod returns whether the cache holds a pod that matches.
func (c caches) anyPod(match func(*failures.Pod) bool) bool {
	return failures.AnyPod(c.pods.List(), match)
}

// firstCause returns why a Job failed. The sequence ends with it, so that there is no other time to look.
func (c *Controller) firstCause(ctx context.Context, namespace string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	return c.causes.FirstCause(ctx, namespace, failures.Job{
		Name: job.Name, UID: job.UID, Decided: true, InContainers: job.InContainers, Failure: job.Failure,
	})
}

// onPods remembers failures, and looks at a sequence when the scheduler finds no node for one of its pods, or finds one again.
// Pods change all the time, so that all other changes cost nothing.
func (c *Controller) onPods() cache.ResourceEventHandlerFuncs {
	changed := func(was, is *watchedPod) {
		pod := is
		if pod == nil {
			pod = was
		}
		c.failures.Note(&pod.Pod)
		if before, after := was != nil && was.Unschedulable(), is != nil && is.Unschedulable(); before != after {
			c.queue.AddSoon(pod.key())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(nil, asPod(obj)) },
		UpdateFunc: func(before, after any) { changed(asPod(before), asPod(after)) },
		DeleteFunc: func(obj any) {
			if pod := asPod(obj); pod != nil {
				changed(pod, nil)
			}
		},
	}
}

func asPod(obj any) *watchedPod {
	pod, _ := obj.(*watchedPod)
	return pod
}
