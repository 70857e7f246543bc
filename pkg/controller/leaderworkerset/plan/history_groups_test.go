// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// history is a random history of the groups of one set. Plans that write the status may be lost, deletions may be refused, and caches lag.
type history struct {
	*fixture
	r *rand.Rand
	// deletions counts the accepted requests to delete each leader, and causes the leaders that were deleted without one stored first.
	deletions map[types.UID]int
	// incarnation is the number of the next pod.
	incarnation int
	restarts    map[int32]int32
}

// TestHistories runs random histories and checks what must always hold.
func TestHistories(t *testing.T) {
	for seed := range int64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(seed)) //nolint:gosec // repeatable
			h := &history{fixture: newFixture(t, 1+r.Int31n(6), 1+r.Int31n(4)), r: r, deletions: map[types.UID]int{}, restarts: map[int32]int32{}}
			h.configure()
			for range 80 {
				h.event()
				h.decide()
				h.later(time.Duration(r.Intn(4)) * time.Second)
			}
			h.calm()
		})
	}
}

func (h *history) configure() {
	template := &h.Set.Spec.LeaderWorkerTemplate
	if h.r.Intn(3) == 0 {
		template.MaxGroupRestarts = ptr.To(h.r.Int31n(3))
	}
	if h.r.Intn(2) == 0 {
		h.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To(1 + h.r.Int31n(5)), MaxSeconds: ptr.To[int32](20)}
	}
	if h.r.Intn(3) == 0 {
		h.Set.Annotations = map[string]string{leaderworkersetv1.RecreateGroupAfterStartAnnotationKey: ""}
	}
}

// event has something happen to the groups.
func (h *history) event() {
	if len(h.Leaders) == 0 {
		h.comeBack()
		return
	}
	g := &h.Leaders[h.r.Intn(len(h.Leaders))]
	switch h.r.Intn(10) {
	case 0:
		g.Restarted, g.Ready = true, false
	case 1, 2:
		if w := h.pickWorker(g); w != nil {
			w.Restarted, w.Ready = true, false
		}
	case 3:
		if w := h.pickWorker(g); w != nil {
			w.Deleting = true
		}
	case 4:
		if i := h.workersOf(g); i >= 0 && len(h.Observed.Workers[i].Pods) > 0 {
			h.Observed.Workers[i].Lost++
		}
	case 5:
		if h.r.Intn(4) == 0 {
			g.Deleting = true // by a user
		}
	case 6:
		if h.Set.Status.Restart == nil && h.r.Intn(3) == 0 {
			request(h.fixture, map[bool][]int32{true: nil, false: {g.Group}}[h.r.Intn(2) == 0]...)
		}
	case 7:
		g.Ready = !g.Ready
	default:
		h.comeBack()
	}
}

func (h *history) workersOf(leader *Pod) int {
	return slices.IndexFunc(h.Observed.Workers, func(w Workers) bool { return w.Leader == leader.UID })
}

func (h *history) pickWorker(leader *Pod) *Pod {
	if i := h.workersOf(leader); i >= 0 && len(h.Observed.Workers[i].Pods) > 0 {
		return &h.Observed.Workers[i].Pods[h.r.Intn(len(h.Observed.Workers[i].Pods))]
	}
	return nil
}

// comeBack replaces groups whose leader is being deleted, and creates missing workers, as the cluster does.
func (h *history) comeBack() {
	for i := range h.Leaders {
		if l := &h.Leaders[i]; l.Deleting && h.r.Intn(2) == 0 {
			uid := l.UID
			h.GoneLeaders = append(h.GoneLeaders, *l)
			h.Observed.Workers = slices.DeleteFunc(h.Observed.Workers, func(w Workers) bool { return w.Leader == uid && h.r.Intn(4) > 0 })
			h.incarnation++
			*l = Pod{
				Ref: Ref{Name: l.Name, UID: types.UID(fmt.Sprintf("%s#%d", l.Name, h.incarnation))}, Controller: l.Controller, Group: l.Group,
				Revision: l.Revision, Phase: corev1.PodRunning, Ready: true, Node: l.Node, Created: h.Now,
			}
		} else if i := h.workersOf(l); i < 0 {
			// Those of the former leader go, and then there is room.
			h.Observed.Workers = slices.DeleteFunc(h.Observed.Workers, func(w Workers) bool { return w.Name == l.Name })
		}
	}
}

// decide decides as the controller does, and checks the plan.
func (h *history) decide() {
	h.t.Helper()
	p := decide(h.t, h.Observed)
	if again := decide(h.t, h.shuffled()); !equality.Semantic.DeepEqual(p, again) {
		h.t.Fatal("equal snapshots have different plans:\n" + cmp.Diff(p, again))
	}
	h.check(p)
	for _, d := range p.DeleteLeaders {
		if h.r.Intn(5) == 0 {
			continue // refused
		}
		h.deletions[d.UID]++
		for i := range h.Leaders {
			if h.Leaders[i].UID == d.UID {
				h.Leaders[i].Deleting = true
			}
		}
	}
	for _, w := range p.CreateWorkers {
		h.addWorkers(h.indexOf(w.Name), *w.Spec.Replicas+1, w.Labels[leaderworkersetv1.RevisionKey])
	}
	if p.Status != nil {
		if h.r.Intn(5) == 0 {
			return // refused
		}
		h.Set.Status = *p.Status
	}
	h.Evaluated = map[types.UID]bool{}
	for _, uid := range p.Evaluated {
		h.Evaluated[uid] = true
	}
	h.GoneLeaders = slices.DeleteFunc(h.GoneLeaders, func(gone Pod) bool { return h.Evaluated[gone.UID] })
}

func (h *history) indexOf(leader string) int32 {
	var i int32
	if _, err := fmt.Sscanf(leader, "s-%d", &i); err != nil {
		h.t.Fatal(err)
	}
	return i
}

// shuffled returns the same snapshot with its lists in another order.
func (h *history) shuffled() Observed {
	o := h.Observed
	o.Leaders, o.Workers = slices.Clone(o.Leaders), slices.Clone(o.Workers)
	r := rand.New(rand.NewSource(int64(len(o.Workers)))) //nolint:gosec // repeatable
	r.Shuffle(len(o.Leaders), func(i, j int) { o.Leaders[i], o.Leaders[j] = o.Leaders[j], o.Leaders[i] })
	r.Shuffle(len(o.Workers), func(i, j int) { o.Workers[i], o.Workers[j] = o.Workers[j], o.Workers[i] })
	return o
}

// check checks one plan.
func (h *history) check(p Plan) {
	h.t.Helper()
	status := h.Set.Status
	stored := map[types.UID]bool{}
	for _, e := range status.Groups {
		if !e.Failed {
			stored[e.RestartedLeader] = true
		}
	}
	if status.Restart != nil {
		for _, uid := range status.Restart.Leaders {
			stored[uid] = true
		}
	}
	for _, d := range p.DeleteLeaders {
		l := leadersByUID(h.Observed)[d.UID]
		switch {
		case !stored[d.UID]:
			h.t.Fatalf("leader %s is deleted before that is stored", d.UID)
		case l == nil || l.Deleting:
			h.t.Fatalf("leader %s is deleted although it is gone or going", d.UID)
		case h.deletions[d.UID] > 0:
			h.t.Fatalf("leader %s is deleted twice", d.UID)
		}
	}
	if p.Status == nil {
		return
	}
	before := byIndex(status.Groups)
	for i := range p.Status.Groups {
		old := before[p.Status.Groups[i].Index]
		h.checkEntry(&old, &p.Status.Groups[i], p)
	}
}

// checkEntry checks what becomes of an entry.
func (h *history) checkEntry(old, e *leaderworkersetv1.GroupStatus, p Plan) {
	h.t.Helper()
	limit := h.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts
	switch {
	case e.Restarts < old.Restarts || e.Restarts > old.Restarts+1:
		h.t.Fatalf("group %d has %d restarts after %d", e.Index, e.Restarts, old.Restarts)
	case e.Restarts > old.Restarts && e.RestartedLeader == old.RestartedLeader:
		h.t.Fatalf("leader %s of group %d counts twice", e.RestartedLeader, e.Index)
	case e.Restarts > old.Restarts && slices.ContainsFunc(p.DeleteLeaders, func(d Deletion) bool { return d.UID == e.RestartedLeader }):
		h.t.Fatalf("a plan that counts the restart of group %d deletes its leader", e.Index)
	case limit != nil && e.Restarts > max(*limit, old.Restarts):
		h.t.Fatalf("group %d has %d restarts, the limit is %d", e.Index, e.Restarts, *limit)
	case e.Restarts > old.Restarts && e.FirstCause == nil:
		h.t.Fatalf("the restart of group %d has no cause", e.Index)
	case e.RestartAt != nil && h.Set.Spec.GroupRestartBackoff == nil:
		h.t.Fatalf("group %d waits without a backoff", e.Index)
	}
}

// calm lets nothing more happen: in the end each group is whole, or failed, and nothing is written any longer.
func (h *history) calm() {
	h.t.Helper()
	quiet := 0
	for range 100 {
		h.comeBack()
		for i := range h.Leaders {
			if !h.Leaders[i].Restarted {
				h.Leaders[i].Ready = true
			}
		}
		before := h.Set.Status.DeepCopy()
		h.decide()
		if equality.Semantic.DeepEqual(before, &h.Set.Status) {
			quiet++
		} else {
			quiet = 0
		}
		h.later(2 * time.Second)
	}
	if quiet < 20 {
		h.t.Fatalf("the status still changes: %+v", h.Set.Status)
	}
	// A group that failed after a request holds up the restart of the others: no more of them go down.
	failed := slices.ContainsFunc(h.Set.Status.Groups, func(e leaderworkersetv1.GroupStatus) bool { return e.Failed })
	if h.Set.Status.Restart != nil && !failed {
		h.t.Fatalf("the requested restart does not end: %+v", h.Set.Status.Restart)
	}
	groups := look(h.Observed).groups
	_, afterStart := recreates(h.Set)
	for i := range groups {
		e := byIndex(h.Set.Status.Groups)[groups[i].index]
		if groups[i].triggerOf(h.Observed, afterStart).holds() && !e.Failed {
			h.t.Fatalf("group %d has failed and is left as it is: %+v", groups[i].index, e)
		}
		if status, _ := h.condition(leaderworkersetv1.ConditionFailed); e.Failed && status != metav1.ConditionTrue {
			h.t.Fatalf("group %d is failed, and the condition is %q", groups[i].index, status)
		}
	}
}
