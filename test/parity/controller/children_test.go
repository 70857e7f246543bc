// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// The controller sees the Jobs, as they carry the label of the set. With labels like those of its own Jobs, only the owner
// distinguishes them.
func TestRow7_3_03_JobOfAnotherUIDIsIgnored(t *testing.T) {
	e := newEnv(t, released)
	foreign := map[string]map[string]string{
		"foreign-bogus": {jobsetv1alpha2.RestartsKey: "many", jobsetv1alpha2.JobIndexKey: "first"},
		"foreign-valid": {jobsetv1alpha2.RestartsKey: "0", jobsetv1alpha2.JobIndexKey: "1"},
	}
	before := map[string]types.UID{}
	for name, labels := range foreign {
		labels[jobsetv1alpha2.JobSetNameKey], labels[jobsetv1alpha2.ReplicatedJobNameKey] = setName, groupB
		created, err := e.stack.Kube.BatchV1().Jobs(e.namespace).Create(e.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet", Name: setName,
					UID: "11111111-2222-3333-4444-555555555555", Controller: ptr.To(true),
				}},
			},
			Spec: testJobSet().Spec.ReplicatedJobs[0].Template.Spec,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before[name] = created.UID
	}
	e.create(testJobSet())
	e.awaitJobs(live, append([]string{"foreign-bogus", "foreign-valid"}, allJobs...)...)
	e.fail("foreign-bogus", "foreign-valid")
	// The set shows first that these failures are not its own.
	e.ready(allJobs...)
	e.awaitCounters("b{ready 3, active 3} a{ready 1, active 1}")
	e.complete(allJobs...)
	e.awaitCompleted()
	e.awaitCounters("b{succeeded 3} a{succeeded 1}")
	for name, labels := range foreign {
		left := e.jobs()[name]
		if left == nil || left.UID != before[name] || left.DeletionTimestamp != nil {
			t.Fatalf("Job %s was deleted or replaced: %+v", name, left)
		}
		if diff := cmp.Diff(labels, pickKeys(left.Labels, labels)); diff != "" {
			t.Errorf("labels of Job %s (-before +after):\n%s", name, diff)
		}
	}
}

// pickKeys returns the labels with the keys of the others.
func pickKeys(labels, keys map[string]string) map[string]string {
	picked := map[string]string{}
	for key := range keys {
		picked[key] = labels[key]
	}
	return picked
}

func TestRow7_3_07_HeadlessService(t *testing.T) {
	t.Run("one Service, made again when it is deleted", func(t *testing.T) {
		e := newEnv(t, released)
		e.create(testJobSet())
		first := e.awaitService(setName, "")
		if first.Spec.ClusterIP != corev1.ClusterIPNone || !first.Spec.PublishNotReadyAddresses {
			t.Errorf("clusterIP %q, publishNotReadyAddresses %t; want None, true", first.Spec.ClusterIP, first.Spec.PublishNotReadyAddresses)
		}
		if diff := cmp.Diff(map[string]string{jobsetv1alpha2.JobSetNameKey: setName}, first.Spec.Selector); diff != "" {
			t.Errorf("selector (-want +got):\n%s", diff)
		}
		e.awaitJobs(live, allJobs...)
		services := e.stack.Kube.CoreV1().Services(e.namespace)
		if list, err := services.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
			t.Errorf("there are %d Services (%v), want 1", len(list.Items), err)
		}
		if err := services.Delete(t.Context(), setName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.awaitService(setName, string(first.UID))
	})
	t.Run("named after the name that the server generated", func(t *testing.T) {
		e := newEnv(t, released)
		js := testJobSet()
		js.Name, js.GenerateName = "", "gen-"
		created := e.create(js)
		if !strings.HasPrefix(created.Name, "gen-") || len(created.Name) <= len("gen-") {
			t.Errorf("generated name is %q", created.Name)
		}
		e.awaitService(created.Name, "")
	})
}

// awaitService waits for the Service with another UID than the given one.
func (e *env) awaitService(name, not string) *corev1.Service {
	e.Helper()
	var service *corev1.Service
	e.eventually(func() (problem string) {
		var err error
		service, err = e.stack.Kube.CoreV1().Services(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case string(service.UID) == not:
			return "the Service is still the old one"
		}
		return ""
	})
	return service
}

func TestRow7_3_25_StatusFollowsTheJobs(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet())
	e.awaitJobs(running, allJobs...)
	e.awaitCounters("b{} a{}")
	e.ready(jobsOfB...)
	e.awaitCounters("b{ready 3, active 3} a{}")
	e.ready(jobA)
	e.awaitCounters("b{ready 3, active 3} a{ready 1, active 1}")
	e.complete(jobsOfB...)
	e.awaitCounters("b{succeeded 3} a{ready 1, active 1}")
	e.complete(jobA)
	e.awaitCounters("b{succeeded 3} a{succeeded 1}")
	e.awaitCompleted()
}

func TestRow7_3_31_CoordinatorOnEveryJob(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(func(js *jobSet) {
		js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: groupA}
	}))
	e.awaitJobs(live, allJobs...)
	want := "test-js-replicated-job-a-0-0.test-js"
	for name, job := range e.jobs() {
		for where, keys := range map[string]map[string]string{
			"label": job.Labels, "annotation": job.Annotations,
			"label of the pods": job.Spec.Template.Labels, "annotation of the pods": job.Spec.Template.Annotations,
		} {
			if got := keys[jobsetv1alpha2.CoordinatorKey]; got != want {
				t.Errorf("%s of Job %s: got %q, want %q", where, name, got, want)
			}
		}
	}
}

func TestRow7_3_35_RefusedJobsShowAsOneEventWithACount(t *testing.T) {
	e := newEnv(t, released)
	e.create(testJobSet(func(js *jobSet) {
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image = ""
	}))
	var found []eventsv1.Event
	e.eventually(func() string {
		list, err := e.stack.Kube.EventsV1().Events(e.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		found = nil
		for _, event := range list.Items {
			if event.Reason == "JobCreationFailed" {
				found = append(found, event)
			}
		}
		if len(found) == 0 || found[0].Series == nil || found[0].Series.Count < 2 {
			return fmt.Sprintf("events JobCreationFailed: %v", found)
		}
		return ""
	})
	if len(found) != 1 {
		t.Errorf("there are %d events JobCreationFailed, want 1 with a count", len(found))
	}
	// What is refused is one replicatedJob; the Jobs of the other one exist.
	e.awaitJobs(live, jobsOfB...)
	event := found[0]
	if event.Type != corev1.EventTypeWarning || event.Regarding.UID != e.get().UID || event.ReportingController != "jobset" || event.Action != "Reconciling" {
		t.Errorf("event of type %s about %s by %s (%s), want a Warning about the set by jobset (Reconciling)",
			event.Type, event.Regarding.UID, event.ReportingController, event.Action)
	}
	if !strings.Contains(event.Note, "spec.template.spec.containers[0].image") {
		t.Errorf("note %q does not name the field", event.Note)
	}
}

func TestRow7_3_36_ElasticSizePatchesJobs(t *testing.T) {
	e := newEnv(t, gated)
	e.create(testJobSet(func(js *jobSet) { resize(js, 2, 2) }))
	e.awaitJobs(running, allJobs...)
	before := e.jobs()
	e.update(func(js *jobSet) { resize(js, 4, 4) })
	e.eventually(func() string {
		for name, job := range e.jobs() {
			if *job.Spec.Parallelism != 4 || *job.Spec.Completions != 4 {
				return fmt.Sprintf("Job %s has size %d/%d", name, *job.Spec.Parallelism, *job.Spec.Completions)
			}
		}
		return ""
	})
	for name, job := range e.jobs() {
		if job.UID != before[name].UID {
			t.Errorf("Job %s was recreated", name)
		}
	}
}

func resize(js *jobSet, parallelism, completions int32) {
	for i := range js.Spec.ReplicatedJobs {
		spec := &js.Spec.ReplicatedJobs[i].Template.Spec
		spec.Parallelism, spec.Completions = ptr.To(parallelism), ptr.To(completions)
	}
}

// refused checks that a write was refused as invalid, at the field or below it, and with the text.
func (e *env) refused(err error, field, text string) {
	e.Helper()
	if !apierrors.IsInvalid(err) {
		e.Errorf("got %v, want that it is invalid", err)
		return
	}
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		if strings.HasPrefix(cause.Field, field) && strings.Contains(cause.Message, text) {
			return
		}
	}
	e.Errorf("no cause at or below %s contains %q: %v", field, text, err)
}
