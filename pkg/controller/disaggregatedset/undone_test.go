// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// minutes makes a pass every second for five minutes, after each of which another party does something, and returns the
// writes that begin with a prefix.
func (r *rig) minutes(t *testing.T, now *clocktesting.FakePassiveClock, prefix string, others func()) (writes int) {
	t.Helper()
	for range 300 {
		now.SetTime(now.Now().Add(time.Second))
		made, _ := r.pass(t) // some fail
		for _, write := range made {
			if strings.HasPrefix(write, prefix) {
				writes++
			}
		}
		others()
	}
	return writes
}

// checkReported checks that the last warning has a text.
func (r *rig) checkReported(t *testing.T, text string) {
	t.Helper()
	warnings := slices.DeleteFunc(r.events.taken(), func(event string) bool { return !strings.HasPrefix(event, "Warning ") })
	if len(warnings) == 0 || !strings.Contains(warnings[len(warnings)-1], text) {
		t.Errorf("the last warning of %q does not have %q", warnings, text)
	}
}

// checkCondition checks how the condition about refused children begins; "" for no condition.
func (r *rig) checkCondition(t *testing.T, want string) {
	t.Helper()
	got := ""
	if c := meta.FindStatusCondition(r.set(t).Status.Conditions, disaggregatedsetv1.ConditionChildCreationFailure); c != nil {
		got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	if !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Errorf("the condition is %q, want %q", got, want)
	}
}

// TestChildrenDeletedByOthers deletes children of each kind whenever they exist.
func TestChildrenDeletedByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	for name, tc := range map[string]struct {
		resource, object, noun string
	}{
		"a LeaderWorkerSet": {"leaderworkersets", "", "leaderworkerset"},
		"a scaler":          {"disaggregatedsetrolescalers", "llm-decode", "disaggregatedsetrolescaler"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigAt(t, now, newSet("prefill=2", "decode=External"))
			child := tc.object
			if child == "" {
				child = childName(t, r.set(t), "prefill")
			}
			created := r.minutes(t, now, "create "+tc.resource+" "+child, func() {
				version := disaggregatedsetv1.SchemeGroupVersion
				if tc.noun == "leaderworkerset" {
					version = leaderworkersetv1.SchemeGroupVersion
				}
				_ = r.client.Tracker().Delete(version.WithResource(tc.resource), "ml", child) // it may not exist
			})
			if created != 6 {
				t.Errorf("created %d times in five minutes, want 6", created)
			}
			r.checkReported(t, "Could not create "+child+": "+tc.noun+" "+child+" was deleted 3 times within a minute")
			r.checkCondition(t, "True UndoneByOthers Could not create "+child+": "+tc.noun+" "+child+" was deleted 3 times within a minute")
		})
	}
}

// TestChildLabelsRemovedByOthers removes the labels of a child whenever it has them.
func TestChildLabelsRemovedByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	child := childName(t, r.set(t), "decode")
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	unlabel := func() {
		lws, err := client.Get(t.Context(), child, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lws.Labels = nil
		if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	unlabel()
	if patched := r.minutes(t, now, "patch leaderworkersets "+child, unlabel); patched != 5 {
		t.Errorf("labels are put back %d times in five minutes, want 5", patched)
	}
	r.checkReported(t, "another party removed or changed the label app of leaderworkerset "+child+" 3 times")
	r.checkCondition(t, "True UndoneByOthers Could not create "+child+": another party removed or changed the label app of leaderworkerset "+child+" 3 times")

	// The other party has gone.
	now.SetTime(now.Now().Add(10 * time.Minute))
	if _, err := r.pass(t); err != nil {
		t.Error(err)
	}
	r.stabilize(t)
	r.checkCondition(t, "False ChildrenCreated no child is refused")
}

// TestScalingUndoneByOthers scales a LeaderWorkerSet back whenever it has the replicas of its role.
func TestScalingUndoneByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	child := childName(t, r.set(t), "decode")
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	scale := func() {
		lws, err := client.Get(t.Context(), child, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lws.Spec.Replicas = ptr.To[int32](7)
		if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scale()
	if patched := r.minutes(t, now, "patch leaderworkersets "+child, scale); patched != 5 {
		t.Errorf("scaled %d times in five minutes, want 5", patched)
	}
	const undone = "another party removed or changed spec.replicas of leaderworkerset "
	r.checkReported(t, "Could not update "+child+": "+undone+child+" 3 times")
	r.checkCondition(t, "True UndoneByOthers Could not update "+child+": "+undone+child+" 3 times")
}

// TestScalerStatusUndoneByOthers empties the status of a scaler whenever it says something.
func TestScalerStatusUndoneByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	client := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml")
	clearStatus := func() {
		scaler, err := client.Get(t.Context(), "llm-decode", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scaler.Status = disaggregatedsetv1.DisaggregatedSetRoleScalerStatus{}
		if _, err := client.UpdateStatus(t.Context(), scaler, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	clearStatus()
	if stored := r.minutes(t, now, "update disaggregatedsetrolescalers/status llm-decode", clearStatus); stored != 5 {
		t.Errorf("stored %d times in five minutes, want 5", stored)
	}
	r.checkReported(t, "another party changed the status of disaggregatedsetrolescaler ml/llm-decode 3 times")
}

// TestSetIsReadForRequestsOnly has a child that is an orphan again after each adoption. The set is read in those passes only in which the API
// is asked to adopt it.
func TestSetIsReadForRequestsOnly(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=2"))
	r.stabilize(t)
	child := childName(t, r.set(t), "decode")
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	disown := func() {
		lws, err := client.Get(t.Context(), child, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lws.OwnerReferences = nil
		if _, err := client.Update(t.Context(), lws, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	disown()
	reads := 0
	r.client.PrependReactor("get", "disaggregatedsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
		reads++
		return false, nil, nil
	})
	if adopted := r.minutes(t, now, "patch leaderworkersets "+child, disown); adopted != 5 || reads != adopted {
		t.Errorf("adopted %d times in five minutes, with %d reads of the set, want 5 each", adopted, reads)
	}
}

// TestScalersCreatedByOthers creates a scaler again whenever it was deleted, because its role is no longer External.
func TestScalersCreatedByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSet("prefill=2", "decode=External"))
	r.stabilize(t)
	scalers := r.client.DisaggregatedsetV1().DisaggregatedSetRoleScalers("ml")
	scaler, err := scalers.Get(t.Context(), "llm-decode", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.edit(t, func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec = newSet("prefill=2", "decode=2").Spec })
	deleted := r.minutes(t, now, "delete disaggregatedsetrolescalers llm-decode", func() {
		next := scaler.DeepCopy()
		next.UID += "x"
		if r.client.Tracker().Create(disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsetrolescalers"), next, "ml") == nil {
			scaler = next
		}
	})
	if deleted != 6 {
		t.Errorf("deleted %d times in five minutes, want 6", deleted)
	}
	r.checkReported(t, "Could not delete llm-decode: disaggregatedsetrolescaler llm-decode was created again 3 times within a minute")
}
