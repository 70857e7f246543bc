// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// mutation is what admission makes of an object that an action edits.
type mutation func(runtime.Object)

func (m mutation) admit(a admission.Attributes) error {
	m(a.GetObject())
	return nil
}

func onJobSet(f func(*jobset.JobSet)) mutation {
	return func(obj runtime.Object) { f(obj.(*jobset.JobSet)) }
}

func onGroups(f func(*leaderworkerset.LeaderWorkerSet)) mutation {
	return func(obj runtime.Object) { f(obj.(*leaderworkerset.LeaderWorkerSet)) }
}

// TestAdmissionChangesWhatAnActionEdits: what admission changes is stored as in an UPDATE, validated, and counted once.
func TestAdmissionChangesWhatAnActionEdits(t *testing.T) {
	cases := map[string]struct {
		action string
		admit  mutation
		want   func(t *testing.T, written, before runtime.Object)
	}{
		"a label and a template of a JobSet": {"suspend a JobSet", onJobSet(func(js *jobset.JobSet) {
			js.Labels = map[string]string{"seen": "true"}
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"}
		}), func(t *testing.T, written, before runtime.Object) {
			next, want := written.(*jobset.JobSet), before.(*jobset.JobSet).DeepCopy()
			want.Labels, want.Spec.Suspend, want.Generation = map[string]string{"seen": "true"}, ptr.To(true), 2
			want.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"}
			if diff := cmp.Diff(want, next); diff != "" {
				t.Errorf("the set (-want +got):\n%s", diff)
			}
		}},
		"neither the status nor the owners of fields": {"resume a JobSet", onJobSet(func(js *jobset.JobSet) {
			js.Status, js.ManagedFields = jobset.JobSetStatus{Restarts: 7}, nil
		}), func(t *testing.T, written, before runtime.Object) {
			next := written.(*jobset.JobSet)
			if n := next.Status.Attempts; next.Status.Restarts != 0 || len(n) != 1 || n[0].User != "alice" {
				t.Errorf("the status is %+v", next.Status)
			}
			if diff := cmp.Diff(before.(*jobset.JobSet).ManagedFields, next.ManagedFields); diff != "" {
				t.Errorf("managed fields (-want +got):\n%s", diff)
			}
		}},
		"the template that a rollback restored": {"roll a LeaderWorkerSet back", onGroups(func(set *leaderworkerset.LeaderWorkerSet) {
			set.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = map[string]string{"team": "a"}
		}), func(t *testing.T, written, _ runtime.Object) {
			next := written.(*leaderworkerset.LeaderWorkerSet)
			template := next.Spec.LeaderWorkerTemplate.WorkerTemplate
			if template.Spec.Containers[0].Image != "v1" || template.Labels["team"] != "a" || next.Generation != 2 || next.Status.LastAction.Revision != 1 {
				t.Errorf("generation %d, action %+v, template %+v", next.Generation, next.Status.LastAction, template)
			}
		}},
		"a step of a SequentialJob": {"suspend a SequentialJob", func(obj runtime.Object) {
			obj.(*batch.SequentialJob).Spec.Containers[0].Image = "mirror/v2"
		}, func(t *testing.T, written, _ runtime.Object) {
			next := written.(*batch.SequentialJob)
			if next.Generation != 2 || next.Status.StepsGeneration != 2 || next.Status.LastAction.Action != batch.ActionSuspend {
				t.Errorf("generation %d, status %+v", next.Generation, next.Status)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := actionCases[tc.action]
			chain := &gatekeeper{}
			s := c.start(t, chain)
			chain.admit = tc.admit.admit
			var seen runtime.Object
			chain.validate = func(a admission.Attributes) error {
				seen = a.GetObject().DeepCopyObject()
				return nil
			}
			if message, refusal := c.act(t, s, ""); refusal != nil {
				t.Fatalf("refused: %s", message)
			}
			tc.want(t, s.store.written, s.store.stored)
			if diff := cmp.Diff(s.store.written, seen); diff != "" {
				t.Errorf("validating admission saw another object (-stored +seen):\n%s", diff)
			}
		})
	}
}

// TestAdmissionReversesActions: an action that admission changes back is refused, and does not claim to have happened.
func TestAdmissionReversesActions(t *testing.T) {
	cases := map[string]struct {
		action string
		admit  mutation
		code   int32
		want   string
	}{
		"suspended again": {"resume a JobSet", suspended, http.StatusForbidden, `jobsets.jobset.x-k8s.io "a" is forbidden: ` +
			"the action must change spec.suspend, but a mutating webhook or policy for UPDATE of jobsets changed it back"},
		"not suspended, by a value in place of none": {"suspend a JobSet", onJobSet(func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(false) }),
			http.StatusForbidden, `jobsets.jobset.x-k8s.io "a" is forbidden: ` +
				"the action must change spec.suspend, but a mutating webhook or policy for UPDATE of jobsets changed it back"},
		"paused again, and changed besides": {"resume a LeaderWorkerSet", onGroups(func(set *leaderworkerset.LeaderWorkerSet) {
			set.Spec.Paused, set.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = ptr.To(true), map[string]string{"team": "a"}
		}), http.StatusForbidden, `leaderworkersets.leaderworkerset.x-k8s.io "a" is forbidden: ` +
			"the action must change spec.paused, but a mutating webhook or policy for UPDATE of leaderworkersets changed it back"},
		"not rolled back": {"roll a LeaderWorkerSet back", onGroups(func(set *leaderworkerset.LeaderWorkerSet) {
			set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "v2"
		}), http.StatusForbidden, `leaderworkersets.leaderworkerset.x-k8s.io "a" is forbidden: ` +
			"the action must change spec.leaderWorkerTemplate, but a mutating webhook or policy for UPDATE of leaderworkersets changed it back"},
		"made invalid": {"suspend a JobSet", onJobSet(func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](9) }), http.StatusUnprocessableEntity,
			`JobSet.jobset.x-k8s.io "a" is invalid: spec.replicatedJobs[0].replicas: Invalid value: 9: was 1; field is immutable`},
		"with metadata that is invalid": {"suspend a JobSet", onJobSet(func(js *jobset.JobSet) { js.Labels = map[string]string{"-": ""} }), http.StatusUnprocessableEntity,
			`JobSet.jobset.x-k8s.io "a" is invalid: metadata.labels: Invalid value: "-"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := actionCases[tc.action]
			chain := &gatekeeper{}
			s := c.start(t, chain)
			chain.admit = tc.admit.admit
			message, refusal := c.act(t, s, "")
			if refusal == nil || refusal.Code != tc.code || !strings.HasPrefix(message, tc.want) || s.store.written != nil {
				t.Errorf("the answer is %q, want %d %q; written: %v", message, tc.code, tc.want, s.store.written)
			}
		})
	}
}

// TestMutatingAdmissionDeniesActions: whoever denies is named by the message as it is.
func TestMutatingAdmissionDeniesActions(t *testing.T) {
	c, chain := actionCases["suspend a JobSet"], &gatekeeper{}
	s := c.start(t, chain)
	chain.admit = func(a admission.Attributes) error { return admission.NewForbidden(a, errors.New("a webhook says no")) }
	message, refusal := c.act(t, s, "")
	if refusal == nil || refusal.Reason != metav1.StatusReasonForbidden || message != `jobsets.jobset.x-k8s.io "a" is forbidden: a webhook says no` {
		t.Errorf("the answer is %q", message)
	}
}
