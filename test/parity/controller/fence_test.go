// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// stays makes sure that the check finds no problem until the controller has answered what happens later. It is for what must not happen.
func (e *env) stays(check func() (problem string)) {
	e.Helper()
	problem := check()
	e.fence(func() bool {
		if problem == "" {
			problem = check()
		}
		return problem != ""
	})
	if problem == "" {
		problem = check()
	}
	if problem != "" {
		e.Fatal(problem)
	}
}

// fence has the controller answer for another set in another namespace: its Job is created, becomes ready, and completes. The
// controller has seen all earlier changes of sets and Jobs by then, and has written a status twice, so that it had time to write what these
// call for, too. It ends early when stop returns true.
func (e *env) fence(stop func() bool) {
	e.Helper()
	namespace, err := e.stack.Kube.CoreV1().Namespaces().Create(e.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "fence-"},
	}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	const group = "w"
	fence := *e
	fence.namespace, fence.sets = namespace.Name, e.stack.JobSets.JobsetV1alpha2().JobSets(namespace.Name)
	js := builders.JobSet(setName, builders.WithJobs(group, 1, 1))
	js.Namespace = ""
	fence.create(js)
	const job = setName + "-" + group + "-0"
	fence.eventually(func() string {
		if stop() {
			return ""
		}
		return difference("Jobs of the fence", []string{job}, fence.names(live))
	})
	if stop() {
		return
	}
	fence.ready(job)
	fence.eventually(func() string {
		if got := fence.get().Status.ReplicatedJobsStatus; !stop() && (len(got) != 1 || got[0].Ready != 1) {
			return fmt.Sprintf("the fence has the status %+v, want 1 ready", got)
		}
		return ""
	})
	fence.complete(job)
	fence.eventually(func() string {
		if got := fence.get().Status.TerminalState; !stop() && got != jobsetv1alpha2.TerminalStateCompleted {
			return fmt.Sprintf("the fence has the terminal state %q", got)
		}
		return ""
	})
}
