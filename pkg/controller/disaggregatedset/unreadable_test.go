// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// damagedChild returns the placeholder of a child. Without its metadata nothing but its name is known.
func damagedChild(lws *leaderworkersetv1.LeaderWorkerSet, metadata bool) *leaderworkersetv1.LeaderWorkerSet {
	out := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Namespace: lws.Namespace, Name: lws.Name, ResourceVersion: "90"}}
	if metadata {
		out.UID, out.Labels, out.OwnerReferences = lws.UID, lws.Labels, lws.OwnerReferences
	}
	out.Annotations = map[string]string{unreadable.Annotation: "its bytes are damaged"}
	return out
}

// TestRoleThatCannotBeRead has the server lose the bytes of the LeaderWorkerSet of one of two roles, and the user change the image. No
// revision is rolled out beside the old one, whether this process has seen the role or not.
func TestRoleThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct{ restarted, metadata bool }{
		"while the controller runs":                  {metadata: true},
		"while it runs, and its metadata is lost":    {},
		"before the controller starts":               {restarted: true, metadata: true},
		"before it starts, and its metadata is lost": {restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testUnreadableRole(t, tc.restarted, tc.metadata) })
		})
	}
}

func testUnreadableRole(t *testing.T, restarted, metadata bool) {
	first := newRig(t, newSet("prefill=2", "decode=2"))
	first.end(t)
	first.stabilize(t)
	sound := first.children(t)
	bad := childName(t, first.set(t), "decode")
	var objects []runtime.Object
	for i := range sound {
		if objects = append(objects, &sound[i]); restarted && sound[i].Name == bad {
			objects[i] = damagedChild(&sound[i], metadata)
		}
	}
	services, err := first.kube.CoreV1().Services("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, append(objects, first.set(t))...)
	r.end(t)
	r.version = 1000
	for i := range services.Items {
		if err := r.kube.Tracker().Add(&services.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	r.watches.Start(t.Context())
	synctest.Wait()
	put := func(lws *leaderworkersetv1.LeaderWorkerSet) {
		t.Helper()
		if err := r.client.Tracker().Update(leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets"), lws, "ml"); err != nil {
			t.Fatal(err)
		}
	}
	var child *leaderworkersetv1.LeaderWorkerSet
	for i := range sound {
		if sound[i].Name == bad {
			child = &sound[i]
		}
	}
	if !restarted {
		put(damagedChild(child, metadata))
	}
	r.edit(t, image("b"))
	r.written()
	for range 5 {
		synctest.Wait()
		if err := r.run(t); err != nil {
			t.Fatal(err)
		}
	}
	if writes := r.written(); len(writes) > 0 {
		t.Errorf("while a role cannot be read, the controller writes:\n%s", strings.Join(writes, "\n"))
	}
	ds := r.set(t)
	progressing := findCondition(ds, disaggregatedsetv1.ConditionProgressing)
	if progressing.Reason != disaggregatedsetv1.ReasonChildUnreadable || !strings.Contains(progressing.Message, bad) ||
		!strings.Contains(progressing.Message, "its bytes are damaged") {
		t.Errorf("condition %+v", progressing)
	}
	if got := ds.Status.RoleStatuses; len(got) != 2 || got[0].Replicas != 2 || got[1].Replicas != 2 {
		t.Errorf("counts of roles: %+v", got)
	}
	child.ResourceVersion = "95"
	put(child)
	for range 3 {
		synctest.Wait()
		if err := r.run(t); err != nil {
			t.Fatal(err)
		}
	}
	if writes := r.written(); len(writes) == 0 {
		t.Error("the set does not go on when the role can be read again")
	}
}

// end ends the queue of the controller with the test, as its bubble demands.
func (r *rig) end(t *testing.T) {
	t.Cleanup(func() {
		ctx, stop := context.WithCancel(context.Background())
		stop()
		r.queue.Run(ctx, 1, r.Sync)
	})
}

func findCondition(ds *disaggregatedsetv1.DisaggregatedSet, conditionType string) (c metav1.Condition) {
	for _, c = range ds.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return metav1.Condition{}
}

// children returns the LeaderWorkerSets as stored.
func (r *rig) children(t *testing.T) []leaderworkersetv1.LeaderWorkerSet {
	t.Helper()
	list, err := r.client.LeaderworkersetV1().LeaderWorkerSets("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
