// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// What is refused for a reason that all share is asked for once in a pass, and what is refused for its own reason a few times.
func TestRefusedWritesAreFew(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no permission": {apierrors.NewForbidden(schema.GroupResource{Resource: "leaderworkersets"}, "x", errors.New(`User "c" cannot create resource "leaderworkersets"`)), 1},
		"a webhook":     {apierrors.NewForbidden(schema.GroupResource{Resource: "leaderworkersets"}, "x", errors.New(`admission webhook "w" denied the request`)), maxRefused},
	} {
		t.Run(name, func(t *testing.T) {
			ds := newSet("prefill=1", "decode=1")
			ds.Spec.Slices = ptr.To[int32](30)
			r := newRig(t, ds)
			r.deps.Runner = children.NewSlowStart(1) // a pass begins with several requests at a time, and all of them may be refused
			var requests int
			r.client.PrependReactor("create", "leaderworkersets", func(clientgotesting.Action) (bool, runtime.Object, error) {
				requests++
				return true, nil, tc.err
			})
			if _, err := r.pass(t); err == nil || requests != tc.want {
				t.Errorf("%d requests (%v), want %d", requests, err, tc.want)
			}
			if got := r.events.taken(); len(got) != min(tc.want, maxRefusals) || !strings.HasPrefix(got[0], "Warning FailedCreate ") {
				t.Errorf("events %q", got)
			}
		})
	}
}

// A write that is refused is reported, whatever its verb.
func TestRefusedWritesAreReported(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	r.events.taken()
	r.refuse("patch", "leaderworkersets", "", apierrors.NewForbidden(schema.GroupResource{Resource: "leaderworkersets"}, "x", errRefused))
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](5) })
	if _, err := r.pass(t); err == nil {
		t.Error("no error")
	}
	if got := r.events.taken(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning FailedUpdate Update Could not update llm-0-") {
		t.Errorf("events %q", got)
	}
	r.checkCondition(t, "True AdmissionDenied Could not update llm-0-")
}

// TestRefusalsThatPass has an API that does not answer for a moment, and then for longer.
func TestRefusalsThatPass(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=2"))
	r.refuse("create", "leaderworkersets", "", apierrors.NewServiceUnavailable("starting"))
	fails := func() {
		t.Helper()
		if _, err := r.pass(t); err == nil {
			t.Error("no error")
		}
	}
	fails()
	now.SetTime(now.Now().Add(14 * time.Second))
	fails()
	r.checkCondition(t, "")
	now.SetTime(now.Now().Add(time.Second))
	fails()
	r.checkCondition(t, "True FailedCreate Could not create llm-0-")
}

// TestScalerOfOthers has a scaler of others under the name of one of the set.
func TestScalerOfOthers(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=External"))
	scaler := &disaggregatedsetv1.DisaggregatedSetRoleScaler{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "llm-decode", UID: "other"}}
	if err := r.client.Tracker().Add(scaler); err != nil {
		t.Fatal(err)
	}
	_, _ = r.pass(t)
	_, _ = r.pass(t)
	r.checkCondition(t, "True NameConflict scaler llm-decode could not be created: a scaler with this name exists")
}

// A LeaderWorkerSet that has lost its labels and is being deleted holds a name, and no cache shows when it is gone.
func TestNameOfAnUnlabeledChildThatIsGoing(t *testing.T) {
	r := newRig(t, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	client, name := r.client.LeaderworkersetV1().LeaderWorkerSets("ml"), childName(t, r.set(t), "decode")
	lws, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lws.Labels, lws.DeletionTimestamp, lws.Finalizers = nil, ptr.To(metav1.Now()), []string{metav1.FinalizerDeleteDependents}
	if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pass(t); err == nil {
		t.Error("no error, so that nothing leads to another pass")
	}
}
