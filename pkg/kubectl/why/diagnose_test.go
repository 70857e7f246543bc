// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func microBefore(d time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(now.Add(-d))) }

// diagnosisCase is evidence and what has to be found first in it.
type diagnosisCase struct {
	evidence *Evidence
	want     Cause
	// words must be in the sentence.
	words []string
	// further are the causes after the first.
	further []Cause
}

func TestDiagnose(t *testing.T) {
	for name, tc := range allCases() {
		t.Run(name, func(t *testing.T) {
			report := Diagnose(tc.evidence)
			if len(report.Findings) == 0 {
				t.Fatal("nothing was found")
			}
			var causes []Cause
			for _, f := range report.Findings {
				causes = append(causes, f.Cause)
			}
			if diff := cmp.Diff(append([]Cause{tc.want}, tc.further...), causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s%+v", diff, report.Findings)
			}
			first := report.Findings[0]
			for _, word := range tc.words {
				if !strings.Contains(first.Summary, word) {
					t.Errorf("the sentence does not contain %q: %s", word, first.Summary)
				}
			}
			if len(first.Commands) == 0 || len(first.Evidence) == 0 && first.Cause != Running {
				t.Errorf("no evidence or no commands: %+v", first)
			}
		})
	}
}

// allCases gathers the tables of the other files.
func allCases() map[string]diagnosisCase {
	all := map[string]diagnosisCase{}
	for _, table := range []func() map[string]diagnosisCase{setCases, kueueCases, multiKueueCases, creationCases, scheduleCases, podCases, failureCases, healthCases, inPlaceCases, deviceCases} {
		maps.Copy(all, table())
	}
	return all
}

func TestEveryCauseHasACaseAndIsDocumented(t *testing.T) {
	content, err := os.ReadFile("../../../docs/why.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[Cause]bool{}
	for _, tc := range allCases() {
		tested[tc.want] = true
	}
	for _, tc := range sequenceCases() {
		tested[tc.want] = true
	}
	for _, tc := range leaderWorkerSetCases() {
		tested[tc.want] = true
	}
	for _, tc := range rolesCases() {
		tested[tc.want] = true
	}
	for _, tc := range roomCases() {
		tested[tc.want] = true
	}
	for _, tc := range runCases() {
		tested[tc.want] = true
	}
	documented := map[Cause]bool{}
	for line := range strings.Lines(string(content)) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `") {
			documented[Cause(cells[1])] = true
		}
	}
	for _, cause := range Causes {
		if !tested[cause] {
			t.Errorf("%s is the first cause of no case", cause)
		}
		if !documented[cause] {
			t.Errorf("%s is not in docs/why.md", cause)
		}
		delete(documented, cause)
	}
	if len(documented) > 0 {
		t.Errorf("docs/why.md has causes that do not exist: %v", slices.Collect(maps.Keys(documented)))
	}
}

// healthy is a set whose two Jobs of one pod each are ready, with changes.
func healthy(changes ...func(*Evidence)) *Evidence {
	js := builders.JobSet("train", builders.WithJobs("workers", 2, 1))
	js.Namespace, js.UID, js.Generation, js.CreationTimestamp = "team", "uid-train", 1, before(10*time.Minute)
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Ready: 2, Active: 2}}
	js.Status.Attempts = []jobsetv1alpha2.Attempt{{
		Number: 1, Trigger: jobsetv1alpha2.TriggerStart, Scope: jobsetv1alpha2.ScopeJobSet, RequestTime: microBefore(10 * time.Minute), ReadyTime: microBefore(9 * time.Minute),
	}}
	e := &Evidence{
		Namespace: "team", Name: "train", Now: now, JobSet: js, LeasesRead: true,
		Leases: []coordinationv1.Lease{lease("controller-1", time.Second)},
		Services: map[string]*corev1.Service{"train": {
			ObjectMeta: metav1.ObjectMeta{Name: "train", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}},
		}},
		Nodes: map[string]*corev1.Node{}, Claims: map[string]*corev1.PersistentVolumeClaim{}, TakenJobs: map[string]*batchv1.Job{},
	}
	for i := range 2 {
		job := childJob(js, i)
		e.Jobs, e.Pods = append(e.Jobs, job), append(e.Pods, childPod(job))
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

func lease(holder string, renewed time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: microBefore(renewed)},
	}
}

func childJob(js *jobsetv1alpha2.JobSet, index int) *batchv1.Job {
	name := fmt.Sprintf("%s-workers-%d", js.Name, index)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: js.Namespace, UID: types.UID("uid-" + name), CreationTimestamp: before(10 * time.Minute),
			Labels: map[string]string{
				jobsetv1alpha2.JobSetNameKey: js.Name, jobsetv1alpha2.ReplicatedJobNameKey: "workers",
				jobsetv1alpha2.JobIndexKey: fmt.Sprint(index), jobsetv1alpha2.RestartsKey: "0",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))},
		},
		Spec:   batchv1.JobSpec{Parallelism: ptr.To(int32(1)), Completions: ptr.To(int32(1)), BackoffLimit: ptr.To(int32(6))},
		Status: batchv1.JobStatus{Active: 1, Ready: ptr.To(int32(1))},
	}
}

func childPod(job *batchv1.Job) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-0-abcde", Namespace: job.Namespace, UID: types.UID("uid-" + job.Name + "-0"), Labels: job.Labels, CreationTimestamp: before(10 * time.Minute),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "main", Image: "trainer:v1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before(10 * time.Minute)}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
}

// Changes.

func spec(change func(*jobsetv1alpha2.JobSetSpec)) func(*Evidence) {
	return func(e *Evidence) { change(&e.JobSet.Spec) }
}

func status(change func(*jobsetv1alpha2.JobSetStatus)) func(*Evidence) {
	return func(e *Evidence) { change(&e.JobSet.Status) }
}

func set(change func(*jobsetv1alpha2.JobSet)) func(*Evidence) {
	return func(e *Evidence) { change(e.JobSet) }
}

// has gives the set a condition that is True since two minutes.
func has(conditionType, reason, message string) func(*Evidence) {
	return status(func(s *jobsetv1alpha2.JobSetStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: before(2 * time.Minute)})
	})
}

// notReadyYet makes no Job ready.
func notReadyYet(e *Evidence) {
	e.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 2}}
	e.JobSet.Status.Attempts[0].ReadyTime = nil
	for _, job := range e.Jobs {
		job.Status.Ready = ptr.To(int32(0))
	}
}

// pods changes all pods, none of which is ready any more.
func pods(change func(*corev1.Pod)) func(*Evidence) {
	return func(e *Evidence) {
		notReadyYet(e)
		for _, pod := range e.Pods {
			snapshot.PodCondition(pod, corev1.PodReady).Status = corev1.ConditionFalse
			change(pod)
		}
	}
}

// without takes the Jobs and pods away.
func without(e *Evidence) {
	notReadyYet(e)
	e.Jobs, e.Pods = nil, nil
	e.JobSet.Status.ReplicatedJobsStatus[0].Active = 0
}

// warns adds an event about an object.
func warns(kind string, uid types.UID, reason, message string) func(*Evidence) {
	return func(e *Evidence) {
		e.Events = append(e.Events, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: strings.TrimPrefix(string(uid), "uid-"), UID: uid},
			Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: before(time.Minute), Count: 4,
		})
	}
}
