// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var jobSets = schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}

func unread(err error) func(*Evidence) {
	return func(e *Evidence) { e.JobSet, e.Unread = nil, err }
}

func suspends(s *jobsetv1alpha2.JobSetSpec) { s.Suspend = ptr.To(true) }

// writtenBy is the field manager of spec.suspend.
func writtenBy(manager string, when time.Duration) func(*Evidence) {
	return set(func(js *jobsetv1alpha2.JobSet) {
		js.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: manager, Time: ptr.To(before(when)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)},
			{Manager: "somebody-else", Time: ptr.To(before(0)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
		}
	})
}

func endedAs(outcome jobsetv1alpha2.AttemptOutcome, user, reason string) func(*Evidence) {
	return status(func(s *jobsetv1alpha2.JobSetStatus) {
		a := &s.Attempts[0]
		a.Outcome, a.EndUser, a.EndReason, a.EndTime = outcome, user, reason, microBefore(5*time.Minute)
	})
}

// refuses records that the server refuses to serve its store.
func refuses(age time.Duration) func(*Evidence) {
	return func(e *Evidence) {
		e.Record = &witness.Record{Refusal: &witness.Refusal{
			Reason: witness.ReasonEmptyStore, Message: "The store is empty.", Server: "host-1", Time: metav1.NewTime(now.Add(-age)),
		}}
	}
}

func setCases() map[string]diagnosisCase {
	unavailable := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"service": map[string]any{"namespace": "jobset-system", "name": "jobset-apiserver"}},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "endpoints for service/jobset-apiserver have no addresses", "lastTransitionTime": "2026-11-20T11:50:00Z",
		}}},
	}}
	deleted := set(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(before(time.Minute)) })
	return map[string]diagnosisCase{
		"the API service of the group is unavailable": {
			evidence: healthy(unread(apierrors.NewServiceUnavailable("try later")), func(e *Evidence) { e.APIService = unavailable }),
			want:     APIServiceUnavailable, words: []string{"v1alpha2.jobset.x-k8s.io", "does not answer"},
		},
		"the server refuses to serve its store": {
			evidence: healthy(unread(apierrors.NewServiceUnavailable("try later")), refuses(20*time.Second), func(e *Evidence) { e.APIService = unavailable }),
			want:     StoreRefused, further: []Cause{APIServiceUnavailable},
			words: []string{"refuses to serve its store (EmptyStore, confirmed by host-1 20s ago), so the set cannot be read"},
		},
		"the server refuses to serve the group": {
			evidence: healthy(unread(apierrors.NewServiceUnavailable("try later")), refuses(20*time.Second),
				func(e *Evidence) { e.Record.Refusal.Groups = []string{"jobset.x-k8s.io"} }),
			want: StoreRefused, further: []Cause{APIServiceUnavailable}, words: []string{"refuses to serve jobset.x-k8s.io (EmptyStore, "},
		},
		"the server refuses to serve another group": {
			evidence: healthy(unread(apierrors.NewServiceUnavailable("try later")), refuses(20*time.Second), func(e *Evidence) {
				e.APIService, e.Record.Refusal.Groups = unavailable, []string{"leaderworkerset.x-k8s.io"}
			}),
			want: APIServiceUnavailable,
		},
		"a refusal that may be over": {
			evidence: healthy(unread(apierrors.NewServiceUnavailable("try later")), refuses(14*time.Minute)),
			want:     StoreRefused, further: []Cause{APIServiceUnavailable}, words: []string{"it may be over"},
		},
		"a set cannot be read, and a pod of it crashes": {
			evidence: healthy(pods(crashing("CrashLoopBackOff", 3)), unread(apierrors.NewServiceUnavailable("try later"))),
			want:     APIServiceUnavailable, further: []Cause{CrashLoop},
		},
		"the pods may not be read": {
			evidence: healthy(mayNotRead("pods"), status(func(s *jobsetv1alpha2.JobSetStatus) { s.ReplicatedJobsStatus[0].Ready = 0 })),
			want:     CauseUnknown, words: []string{"cannot read pods"},
		},
		"there is no set of the name": {
			evidence: &Evidence{Namespace: "team", Name: "train", Now: now, Unread: apierrors.NewNotFound(jobSets, "train"), Near: []string{"lws/trains"}},
			want:     NotFound, words: []string{"no JobSet train in the namespace team"},
		},
		"a finalizer of the set keeps it": {
			evidence: healthy(deleted, set(func(js *jobsetv1alpha2.JobSet) { js.Finalizers = []string{"example.com/hold"} })),
			want:     FinalizerBlocksDeletion, words: []string{"example.com/hold"},
		},
		"a finalizer of a Job keeps the set": {
			evidence: healthy(deleted, set(func(js *jobsetv1alpha2.JobSet) { js.Finalizers = []string{metav1.FinalizerDeleteDependents} }), func(e *Evidence) {
				e.Jobs[0].DeletionTimestamp, e.Jobs[0].Finalizers = ptr.To(before(time.Minute)), []string{metav1.FinalizerDeleteDependents, "example.com/hold"}
			}),
			want: FinalizerBlocksDeletion, words: []string{"job/train-workers-0", "cannot be deleted"}, further: []Cause{Deleting},
		},
		"a set is being deleted": {evidence: healthy(deleted), want: Deleting, words: []string{"deleted 60s ago"}},
		"the set is held after a restore": {
			evidence: healthy(without, status(func(s *jobsetv1alpha2.JobSetStatus) {
				s.Conditions = append(s.Conditions, metav1.Condition{
					Type: "Held", Status: metav1.ConditionTrue, Reason: "RestoredFromBackup", Message: "the store was restored from a backup", LastTransitionTime: before(time.Minute),
				})
			})),
			want: HeldAfterRestore, words: []string{"held until a user resumes or deletes it: the store was restored from a backup"},
		},
		"the set is older than its namespace": {
			evidence: healthy(without, status(func(s *jobsetv1alpha2.JobSetStatus) {
				s.Conditions = append(s.Conditions, metav1.Condition{
					Type: "NamespaceRecreated", Status: metav1.ConditionTrue, Reason: "OlderThanNamespace", Message: "the namespace team was deleted and created again", LastTransitionTime: before(time.Minute),
				})
			})),
			want: OlderThanNamespace, words: []string{"the namespace team was deleted and created again"},
		},
		"another controller manages the set": {
			evidence: healthy(without, spec(func(s *jobsetv1alpha2.JobSetSpec) { s.ManagedBy = ptr.To("example.com/other") })),
			want:     ManagedByOther, words: []string{"example.com/other"},
		},
		"an owner suspended the set": {
			evidence: healthy(spec(suspends), set(func(js *jobsetv1alpha2.JobSet) {
				js.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainJob", Name: "big", Controller: ptr.To(true)}}
			})),
			want: SuspendedByOwner, words: []string{"TrainJob big"},
		},
		"a user suspended the set by the action": {
			evidence: healthy(spec(suspends), endedAs(jobsetv1alpha2.OutcomeSuspended, "alice", "disk is full")),
			want:     SuspendedByUser, words: []string{"suspended by alice 5m ago", `"disk is full"`},
		},
		"Kueue suspended a set that names no queue": {
			evidence: healthy(spec(suspends), writtenBy("kubectl-create", 3*time.Minute), func(e *Evidence) {
				e.Kueue = Kueue{Served: true, WorkloadRead: true, Workload: workloadWaiting("LocalQueue  doesn't exist")}
			}),
			want: QueueMissing, words: []string{"suspended by Kueue, which runs with manageJobsWithoutQueueName and starts nothing that names no queue"},
		},
		"a user edited spec.suspend": {
			evidence: healthy(spec(suspends), writtenBy("kubectl-edit", 3*time.Minute)),
			want:     SuspendedByUser, words: []string{"suspended with kubectl-edit 3m ago"},
		},
		"a set was created suspended": {
			evidence: healthy(without, spec(suspends), status(func(s *jobsetv1alpha2.JobSetStatus) { s.Attempts = nil }), writtenBy("helm", 10*time.Minute)),
			want:     SuspendedByUser, words: []string{"created suspended, with helm 10m ago"},
		},
		"a suspended set has no controller": {
			evidence: healthy(spec(suspends), func(e *Evidence) { e.Leases[0] = lease("controller-1", time.Hour) }),
			want:     SuspendedByUser, further: []Cause{ControllerNotRunning},
		},
		"nobody renews the lease": {
			evidence: healthy(func(e *Evidence) { e.Leases[0] = lease("controller-1", time.Hour) }),
			want:     ControllerNotRunning, words: []string{"does not run"}, further: []Cause{Running},
		},
		"nobody holds the lease": {
			evidence: healthy(func(e *Evidence) { e.Leases[0] = lease("", time.Second) }),
			want:     ControllerNotRunning, further: []Cause{Running},
		},
		"one of two leases is held": {
			evidence: healthy(func(e *Evidence) {
				e.Leases = []coordinationv1.Lease{lease("", time.Hour), lease("controller-2", time.Second)}
			}),
			want: Running,
		},
		"there is no lease, and nobody has looked at the set": {
			evidence: healthy(without, func(e *Evidence) { e.Leases, e.JobSet.Status = nil, jobsetv1alpha2.JobSetStatus{} }),
			want:     ControllerNotRunning, words: []string{"has ever run"},
		},
		"there is a leader, and nobody has looked at the set": {
			evidence: healthy(without, func(e *Evidence) { e.JobSet.Status = jobsetv1alpha2.JobSetStatus{} }),
			want:     ControllerNotActing,
		},
		"the Service of the name is foreign": {
			evidence: healthy(func(e *Evidence) {
				e.Services["train"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "web"}}}
			}),
			want: ServiceForeign, words: []string{"selector {app=web}", "not headless"}, further: []Cause{Running},
		},
		"somebody made the Service for the set": {
			evidence: healthy(func(e *Evidence) {
				e.Services["train"] = &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{jobsetv1alpha2.JobSetNameKey: "train"}}}
			}),
			want: Running,
		},
		"the Service is gone": {
			evidence: healthy(func(e *Evidence) { e.Services["train"] = nil }),
			want:     ServiceMissing, further: []Cause{Running},
		},
		"hostnames are disabled, but there is a coordinator": {
			evidence: healthy(spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.Network.EnableDNSHostnames, s.Coordinator = ptr.To(false), &jobsetv1alpha2.Coordinator{ReplicatedJob: "workers", JobIndex: 1}
			})),
			want: CoordinatorWithoutHostname, words: []string{"train-workers-1"}, further: []Cause{Running},
		},
		"hostnames are disabled, but a container is given one": {
			evidence: healthy(spec(func(s *jobsetv1alpha2.JobSetSpec) {
				s.Network.EnableDNSHostnames = ptr.To(false)
				s.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Args = []string{"--master=train-workers-0-0.train:29500"}
			})),
			want: CoordinatorWithoutHostname, further: []Cause{Running},
		},
		"hostnames are disabled, and nobody uses them": {
			evidence: healthy(spec(func(s *jobsetv1alpha2.JobSetSpec) { s.Network.EnableDNSHostnames = ptr.To(false) })),
			want:     Running,
		},
	}
}
