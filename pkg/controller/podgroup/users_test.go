// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"fmt"
	"reflect"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what happens to pods, Jobs and the PodReadinessGroup without the controller.

// createPod creates a pod with a free name. Most of the pods belong to a group.
func (e *env) createPod() { e.createPodNamed(fmt.Sprint("p", e.Dice.IntN(6))) }

func (e *env) createPodNamed(podName string) {
	if _, taken := e.pods.Get(podName); taken {
		return
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if e.Dice.Percent(10) {
		e.Note("somebody creates pod %s, which belongs to no group", podName)
		e.pods.Create(pod)
		return
	}
	prefix := prefixes[0]
	if e.Dice.Percent(e.faults.legacy) {
		prefix = prefixes[1]
	}
	pod.Labels[prefix.GroupKey] = name
	if e.Dice.Percent(e.faults.stating) {
		size := simulation.OneOf(e.Dice, "2", "2", "3", "3", "many", "0", "-1", "100001")
		if e.Dice.Percent(50) {
			pod.Labels[prefix.SizeKey] = size
		} else {
			pod.Annotations[prefix.SizeKey] = size
		}
	}
	if e.Dice.Percent(e.faults.owned) {
		if e.Dice.Percent(90) || len(e.jobs.Objects) == 0 {
			e.createJob(simulation.OneOf(e.Dice, "j0", "j0", "j0", "j1"))
		}
		pod.OwnerReferences = ownerRef(simulation.OneOf(e.Dice, e.jobs.Objects...))
	}
	pod = e.pods.Create(pod)
	e.Note("pod %s (%s) of prefix %d is created, owners %d, size %q", podName, pod.UID, prefixOf(pod), len(pod.OwnerReferences), pod.Labels[prefix.SizeKey]+pod.Annotations[prefix.SizeKey])
}

// createJob creates a Job unless there is one of the name.
func (e *env) createJob(jobName string) {
	if _, found := e.jobs.Get(jobName); !found {
		e.jobs.Create(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: jobName}, Spec: batchv1.JobSpec{Parallelism: ptr.To(1 + e.Dice.Int32N(4))},
		})
	}
}

// liveSomePod takes one pod a step further.
func (e *env) liveSomePod() {
	if len(e.pods.Objects) > 0 {
		e.live(simulation.OneOf(e.Dice, e.pods.Objects...), true)
	}
}

// live takes a pod a step further: it starts, becomes ready or unready, ends, or is gone. It reports whether anything
// changed. Pods that do not end run on once they are ready.
func (e *env) live(pod *corev1.Pod, ends bool) bool {
	switch {
	case pod.DeletionTimestamp != nil:
		e.Note("pod %s is gone", pod.Name)
		e.ended[pod.UID] = true
		e.pods.EndIfDeleted(pod)
	case pod.Status.Phase == corev1.PodPending:
		e.Note("pod %s starts", pod.Name)
		e.pods.Change(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	case pod.Status.Phase != corev1.PodRunning:
		return false
	case ends && e.Dice.Percent(15):
		e.end(pod)
	case !podReady(pod) || ends && e.Dice.Percent(30):
		status := corev1.ConditionTrue
		if podReady(pod) {
			status = corev1.ConditionFalse
		}
		e.Note("pod %s is ready: %s", pod.Name, status)
		e.pods.Change(pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		})
	default:
		return false
	}
	return true
}

func (e *env) end(pod *corev1.Pod) {
	phase := corev1.PodSucceeded
	if e.Dice.Percent(e.faults.failing) {
		phase = corev1.PodFailed
	}
	e.Note("pod %s: %s", pod.Name, phase)
	e.Seen["pods: "+string(phase)]++
	e.pods.Change(pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions = phase, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: e.cluster.Stored(e.World)}}}}
	})
}

func (e *env) deleteSomePod() {
	if len(e.pods.Objects) == 0 {
		return
	}
	pod := simulation.OneOf(e.Dice, e.pods.Objects...)
	e.Note("pod %s is deleted", pod.Name)
	e.pods.Delete(pod, metav1.DeletePropagationBackground)
	e.Seen["pods deleted"]++
	if e.Dice.Percent(50) {
		e.ended[pod.UID] = true // it stops at once, and its name is free
		if live, found := e.pods.Get(pod.Name); found {
			e.pods.EndIfDeleted(live)
		}
		e.createPodNamed(pod.Name)
	}
}

// removeSomeLabel lets a user remove the label of a pod.
func (e *env) removeSomeLabel() {
	for _, i := range e.Dice.Perm(len(e.pods.Objects)) {
		if pod := e.pods.Objects[i]; labeled(pod) {
			e.Note("user removes the label of pod %s", pod.Name)
			e.Seen["labels removed by users"]++
			e.unlabeled[pod.UID]++
			e.pods.Change(pod, func(p *corev1.Pod) { delete(p.Labels, prefixes[prefixOf(p)].ReadyKey) })
			return
		}
	}
}

func (e *env) createGroup() {
	group := &batchv1alpha1.PodReadinessGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	e.setSpec(group)
	group.Status.Phase = batchv1alpha1.GroupPending
	group = e.groups.Create(group)
	e.Note("user creates the PodReadinessGroup %s: minMember %d, %s", group.UID, ptr.Deref(group.Spec.MinMember, -1), group.Spec.ReadyWhen)
}

func (e *env) setSpec(group *batchv1alpha1.PodReadinessGroup) {
	group.Spec.MinMember = simulation.OneOf[*int32](e.Dice, nil, nil, ptr.To[int32](1), ptr.To[int32](2), ptr.To[int32](3))
	group.Spec.ReadyWhen = simulation.OneOf(e.Dice, batchv1alpha1.ReadyWhenRunning, batchv1alpha1.ReadyWhenReady)
}

// changeGroup is what users do to the PodReadinessGroup.
func (e *env) changeGroup() {
	group := e.group()
	switch n := e.Dice.IntN(100); {
	case group == nil:
		e.createGroup()
		e.Seen["groups created"]++
	case n < 60:
		group = e.groups.Change(group, func(g *batchv1alpha1.PodReadinessGroup) {
			before := g.Spec
			if e.setSpec(g); !reflect.DeepEqual(before, g.Spec) {
				g.Generation++
			}
		})
		e.Note("user edits the PodReadinessGroup: minMember %d, %s", ptr.Deref(group.Spec.MinMember, -1), group.Spec.ReadyWhen)
		e.Seen["groups edited"]++
	case n < 70:
		e.Note("user annotates the PodReadinessGroup")
		e.groups.Change(group, func(g *batchv1alpha1.PodReadinessGroup) {
			g.Annotations = map[string]string{"touched": strconv.Itoa(e.versions())}
		})
	default:
		how := simulation.OneOf(e.Dice, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		e.Note("user deletes the PodReadinessGroup: %s", how)
		e.Seen["groups deleted: "+string(how)]++
		e.groups.Delete(group, how)
		if e.Dice.Percent(50) && e.group() == nil {
			e.createGroup()
		}
	}
}

// changeJob scales or deletes a Job.
func (e *env) changeJob() {
	if len(e.jobs.Objects) == 0 {
		return
	}
	job := simulation.OneOf(e.Dice, e.jobs.Objects...)
	if e.Dice.Percent(70) {
		job = e.jobs.Change(job, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To(1 + e.Dice.Int32N(4)) })
		e.Note("user scales job %s to %d", job.Name, *job.Spec.Parallelism)
		e.Seen["jobs scaled"]++
		return
	}
	how := simulation.OneOf(e.Dice, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
	e.Note("user deletes job %s: %s", job.Name, how)
	e.Seen["jobs deleted: "+string(how)]++
	e.jobs.Delete(job, how)
}

// These are the requests that a server may refuse.
const (
	patchPod    = "patch pod"
	getJob      = "get job"
	getGroup    = "get podreadinessgroup"
	updateGroup = "update podreadinessgroup"
)

var refusable = []string{patchPod, getJob, getGroup, updateGroup}

// denied is the text of every refusal.
const denied = "denied by a policy"

func (e *env) server(request string) *simulation.Server {
	if request == patchPod || request == getJob {
		return e.cluster
	}
	return e.aggregated
}

func (e *env) refuse(request string) {
	e.Note("from here on refused: %s", request)
	e.broken = e.Dice.Percent(50)
	e.server(request).Refusals[request] = e.denial()
}

// denial is an answer of a server. Policies and webhooks often name the request, so that no two answers are the same.
func (e *env) denial() error {
	e.denials++
	why := fmt.Errorf("%s, request %d", denied, e.denials)
	if e.broken {
		return apierrors.NewInternalError(why)
	}
	return apierrors.NewForbidden(batchv1.Resource("things"), "x", why)
}

func (e *env) allow(request string) { delete(e.server(request).Refusals, request) }

// changeRefusals makes a server begin or end to refuse requests.
func (e *env) changeRefusals() {
	request := simulation.OneOf(e.Dice, refusable...)
	if e.server(request).Refusals[request] != nil {
		e.Note("no longer refused: %s", request)
		e.allow(request)
		return
	}
	e.refuse(request)
}
