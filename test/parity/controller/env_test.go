// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/parity/fixture"
)

// The base fixture of the rows: a JobSet test-js with one Job of replicated-job-a and three of replicated-job-b.
const (
	setName = "test-js"
	groupA  = "replicated-job-a"
	groupB  = "replicated-job-b"
)

const (
	jobA  = setName + "-" + groupA + "-0"
	jobB0 = setName + "-" + groupB + "-0"
	jobB1 = setName + "-" + groupB + "-1"
	jobB2 = setName + "-" + groupB + "-2"
)

var (
	allJobs = []string{jobA, jobB0, jobB1, jobB2}
	jobsOfB = []string{jobB0, jobB1, jobB2}
)

type (
	jobSet        = jobsetv1alpha2.JobSet
	replicatedJob = jobsetv1alpha2.ReplicatedJob
)

// testJobSet returns the base fixture and applies the changes in order.
func testJobSet(change ...func(*jobSet)) *jobSet {
	base := []func(*jobSet){builders.WithJobs(groupA, 1, 1), builders.WithJobs(groupB, 3, 1)}
	js := builders.JobSet(setName, append(base, change...)...)
	js.Namespace = ""
	return js
}

// env is what one test works with: a namespace of its own in one of the control planes.
type env struct {
	framework.Test
	stack     *fixture.Stack
	namespace string
	sets      typedv1alpha2.JobSetInterface
}

// newEnv lets the test run beside others.
func newEnv(t *testing.T, stack string) *env {
	t.Helper()
	t.Parallel()
	s := stacks[stack]
	namespace, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "row-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Test: framework.Test{T: t}, stack: s, namespace: namespace.Name, sets: s.JobSets.JobsetV1alpha2().JobSets(namespace.Name)}
	t.Cleanup(func() {
		if t.Failed() {
			e.dump()
		}
	})
	return e
}

// dump writes what helps to understand a failure.
func (e *env) dump() {
	ctx := context.WithoutCancel(e.Context())
	if sets, err := e.sets.List(ctx, metav1.ListOptions{}); err == nil {
		for _, js := range sets.Items {
			status, _ := json.MarshalIndent(js.Status, "", " ")
			e.Logf("status of %s: %s", js.Name, status)
		}
	}
	if jobs, err := e.stack.Kube.BatchV1().Jobs(e.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, job := range jobs.Items {
			e.Logf("Job %s attempt %s terminating %t suspended %t: %+v", job.Name, job.Labels[jobsetv1alpha2.RestartsKey],
				job.DeletionTimestamp != nil, *job.Spec.Suspend, job.Status)
		}
	}
	e.Logf("log:\n%s", e.stack.Log(e.namespace))
}

// create stores a JobSet.
func (e *env) create(js *jobSet) *jobSet {
	e.Helper()
	created, err := e.sets.Create(e.Context(), js, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return created
}

// get returns the JobSet of the base fixture.
func (e *env) get() *jobSet {
	e.Helper()
	js, err := e.sets.Get(e.Context(), setName, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return js
}

// update changes the JobSet; another client may have written meanwhile.
func (e *env) update(change func(*jobSet)) {
	e.Helper()
	if err := e.tryUpdate(change); err != nil {
		e.Fatal(err)
	}
}

func (e *env) tryUpdate(change func(*jobSet)) error {
	return retryOnConflict(func() error {
		js, err := e.sets.Get(e.Context(), setName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(js)
		_, err = e.sets.Update(e.Context(), js, metav1.UpdateOptions{})
		return err
	})
}

// jobs returns the Jobs in the namespace by name, with those that are being deleted.
func (e *env) jobs() map[string]*batchv1.Job {
	e.Helper()
	list, err := e.stack.Kube.BatchV1().Jobs(e.namespace).List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	jobs := map[string]*batchv1.Job{}
	for i := range list.Items {
		jobs[list.Items[i].Name] = &list.Items[i]
	}
	return jobs
}

// names lists the Jobs for which the condition holds.
func (e *env) names(holds func(*batchv1.Job) bool) []string {
	e.Helper()
	names := []string{}
	for name, job := range e.jobs() {
		if holds(job) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// eventually polls until the check finds no problem.
func (e *env) eventually(check func() (problem string)) {
	e.Helper()
	framework.EventuallyNoProblem(e, check)
}

// difference names a wanted and an actual list when they differ.
func difference(what string, want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("%s: got [%s], want [%s]", what, strings.Join(got, " "), strings.Join(want, " "))
}
