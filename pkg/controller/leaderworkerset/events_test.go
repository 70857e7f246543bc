// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

// TestStepsOfAnUpdateAreEvents sends events of two versions of a set. Steps are events of their own, with their notes,
// and a warning that is repeated is a series.
func TestStepsOfAnUpdateAreEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := leaderworkersetv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	s := NewSyncer(SyncerConfig{Host: &children.Host{}, Recorder: broadcaster.NewRecorder(scheme, Name)})
	set := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u"}}
	for version, note := range map[string]string{"7": "Updating replica 3", "8": "Updating replica 2"} {
		of := set.DeepCopy()
		of.ResourceVersion = version
		s.Report(t.Context(), of, loop.Steps([]plan.Event{
			{Type: corev1.EventTypeNormal, Reason: "GroupsUpdating", Action: "Update", Note: note},
			{Type: corev1.EventTypeWarning, Reason: "FailedCreate", Action: "Create", Note: "refused"},
		})...)
	}
	// Two steps may meet the same version of the set, because a step need not change its status.
	set.ResourceVersion = "9"
	for replica := range 2 {
		step := plan.Event{Type: corev1.EventTypeNormal, Reason: "GroupsUpdating", Action: "Update", Note: fmt.Sprint("Updating replica ", replica), Related: fmt.Sprint("a-", replica)}
		s.Report(t.Context(), set, loop.Relate(loop.Steps([]plan.Event{step}), func(name string) *corev1.ObjectReference {
			return podReference(&plan.Observed{Set: set}, name)
		})...)
	}
	want := []string{"Updating replica 0", "Updating replica 1", "Updating replica 2", "Updating replica 3", "refused"}
	// The names of events are times, which would all be the same in a bubble.
	poll.UntilNil(t, "the events are stored", func() error {
		list, err := client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for i := range list.Items {
			notes = append(notes, list.Items[i].Note)
		}
		slices.Sort(notes)
		if diff := cmp.Diff(want, notes); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
}
