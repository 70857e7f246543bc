// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	jobsetplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	sequenceplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var (
	began = metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
	now   = metav1.NewTime(began.Add(5 * time.Minute))
)

// fault is what is wrong. One of the fields is set.
type fault struct {
	// refused is the event about pods that the API refuses to a controller of the cluster.
	refused string
	// waits is why the scheduler finds no node for the pod.
	waits string
	// container is why the container of the pod does not start, and message what the kubelet says.
	container, message string
	// taken means that another object has the name of the child.
	taken bool
}

// pod returns the pod of an owner, as the fault has it; nil if the fault keeps it from being created.
func (f fault) pod(name string, labels map[string]string, owner metav1.Object, gvk metav1.TypeMeta) *corev1.Pod {
	if f.refused != "" || f.taken {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: builders.Namespace, UID: types.UID(name + "-pod"), Labels: labels, CreationTimestamp: began,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: gvk.APIVersion, Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}}}
	pod.Spec.Containers, pod.Status.Phase = []corev1.Container{{Name: "main", Image: "example.com/main:1"}}, corev1.PodPending
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: began}
	if f.waits != "" {
		scheduled.Status, scheduled.Reason, scheduled.Message = corev1.ConditionFalse, corev1.PodReasonUnschedulable, f.waits
	} else {
		pod.Spec.NodeName = "node-1"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "example.com/main:1", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: f.container, Message: f.message}}}}
	}
	pod.Status.Conditions = []corev1.PodCondition{scheduled}
	return pod
}

// event adds the event about refused pods of an object.
func (f fault) event(a *api, kind string, about metav1.Object) {
	if f.refused == "" {
		return
	}
	a.add("events", &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: about.GetName() + ".1", Namespace: builders.Namespace}, Reason: "FailedCreate", Type: "Warning",
		Message: f.refused, LastTimestamp: now, FirstTimestamp: began, Count: 9,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: about.GetName(), Namespace: builders.Namespace, UID: about.GetUID()}})
}

func (f fault) reason() string { return children.ReasonOfText(f.refused) }

// later returns the times of three passes.
func later() []metav1.Time {
	return []metav1.Time{began, metav1.NewTime(began.Add(time.Minute)), metav1.NewTime(began.Add(2 * time.Minute)), now}
}

// kinds put an object with the fault into the API, with the status that its controller decides on.
var kinds = []struct {
	name, resource string
	create         func(*testing.T, *api, fault) runtime.Object
}{
	{"JobSet", "jobsets", jobSet}, {"SequentialJob", "sequentialjobs", sequence}, {"LeaderWorkerSet", "leaderworkersets", leaderWorkerSet},
	{"DisaggregatedSet", "disaggregatedsets", roleSet},
}

func jobSet(_ *testing.T, a *api, f fault) runtime.Object {
	js := builders.JobSet("train", builders.WithJobs("workers", 1, 1))
	js.UID, js.CreationTimestamp, js.Generation = "train-uid", began, 1
	var jobs []*batchv1.Job
	for _, at := range later() {
		o := jobsetplan.Observed{JobSet: js, Jobs: jobs, ServiceExists: true, KeepAttempts: true, Now: at, RefusedSince: began.Time}
		for _, job := range jobs {
			if f.refused != "" {
				o.PodsRefusedSince, o.RefusedPods = began.Time, map[types.UID]jobsetplan.Refusal{job.UID: {Reason: f.reason(), Message: f.refused, At: at.Time}}
			} else {
				job.Status.Active, job.Status.Ready, job.Status.StartTime = 1, ptr.To[int32](0), &began
			}
			if f.waits != "" {
				o.Unschedulable = jobsetplan.Unschedulable{Pods: 1, Reason: f.waits, Since: began.Time}
			}
		}
		p := jobsetplan.Decide(o)
		r := jobsetplan.Results{}
		for _, job := range p.CreateJobs {
			if f.taken {
				r.Creations = append(r.Creations, jobsetplan.NameTaken)
				continue
			}
			job.UID, job.CreationTimestamp, job.Namespace = types.UID(job.Name+"-uid"), began, js.Namespace
			jobs, r.Creations = append(jobs, job), append(r.Creations, jobsetplan.Created)
		}
		if out := jobsetplan.Finish(o, p, r); out.Status != nil {
			js = js.DeepCopy()
			js.Status = *out.Status
		}
	}
	for _, job := range jobs {
		a.add("jobs", job)
		f.event(a, "Job", job)
		if pod := f.pod(job.Name+"-0-abcde", job.Spec.Template.Labels, job, metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}); pod != nil {
			a.add("pods", pod)
		}
	}
	if f.taken {
		a.add("jobs", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train-workers-0", Namespace: js.Namespace, UID: "other"}})
	}
	a.add("jobsets", js)
	return js
}

func sequence(_ *testing.T, a *api, f fault) runtime.Object {
	sj := builders.SequentialJob("etl", builders.WithContainers("extract", "load"))
	sj.CreationTimestamp, sj.Finalizers = began, []string{batchv1alpha1.SequentialJobFinalizer}
	var jobs []*batchv1.Job
	for _, at := range append(later(), now, now) {
		o := sequenceplan.Observed{SequentialJob: sj, Now: at, RefusedSince: began.Time, Earlier: hostplan.None[string](),
			Restored: hostplan.None[sequenceplan.Restored](), PodsRefusedSince: began.Time}
		for _, job := range jobs {
			job.Status.StartTime = &began
			if f.refused == "" {
				job.Status.Active = 1
			}
			child := sequenceplan.ChildOfJob(job)
			if f.refused != "" {
				child.Refused = &hostplan.Refusal{Reason: f.reason(), Message: f.refused, At: at.Time}
			}
			o.Children = append(o.Children, child)
			if f.waits != "" {
				o.Unschedulable = sequenceplan.Unschedulable{Pods: 1, Reason: f.waits, Since: began.Time}
			}
		}
		p := sequenceplan.Decide(o)
		r := sequenceplan.Results{}
		if job := p.CreateJob; job != nil && f.taken {
			r.Creation = sequenceplan.NameTaken
		} else if job != nil {
			job.UID, job.CreationTimestamp, job.Namespace = types.UID(job.Name+"-uid"), began, sj.Namespace
			jobs, r.Creation = append(jobs, job), sequenceplan.Created
		}
		if out := sequenceplan.Finish(o, p, r); out.Status != nil {
			sj = sj.DeepCopy()
			sj.Status = *out.Status
		}
	}
	for _, job := range jobs {
		a.add("jobs", job)
		f.event(a, "Job", job)
		if pod := f.pod(job.Name+"-abcde", job.Spec.Template.Labels, job, metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}); pod != nil {
			a.add("pods", pod)
		}
	}
	if f.taken {
		a.add("jobs", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: sj.Namespace, UID: "other"}})
	}
	a.add("sequentialjobs", sj)
	return sj
}

func leaderWorkerSet(t *testing.T, a *api, f fault) runtime.Object {
	set := builders.LeaderWorkerSet("vllm", 1, 1)
	set.CreationTimestamp = began
	return groupsOf(t, a, f, set)
}
