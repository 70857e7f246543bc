// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// randomHistory is a random one of a set.
type randomHistory struct {
	*world
	r *rand.Rand
	// allowed is how many groups may be down because of updates: unavailable and surge, the highest since all groups were ready.
	allowed int32
	log     []string
}

// Histories of users, failures and crashes, in any order: what holds at each step, and that each update ends once they do.
func TestRandomHistories(t *testing.T) {
	for seed := range 150 {
		if !runRandomHistory(t, uint64(seed)) {
			return
		}
	}
}

func runRandomHistory(t *testing.T, seed uint64) bool {
	h := &randomHistory{r: rand.New(rand.NewPCG(seed, 1))}
	h.world = newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
		u, s := h.bounds()
		rolling(int32(h.r.IntN(6)), u, s, 0)(set)
		set.Spec.RevisionHistoryLimit = ptr.To(int32(h.r.IntN(3)))
		set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To(int32(1 + h.r.IntN(2)))
	})
	h.counting = counting(h.r.IntN(2))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %v", seed, h.log[max(0, len(h.log)-60):])
		}
	}()
	for range 50 + h.r.IntN(50) {
		h.act()
		h.check()
		if t.Failed() {
			return false
		}
	}
	h.end()
	return !t.Failed()
}

func (h *randomHistory) bounds() (unavailable, surge int32) {
	unavailable, surge = int32(h.r.IntN(3)), int32(h.r.IntN(3))
	if unavailable+surge == 0 {
		unavailable = 1
	}
	return unavailable, surge
}

// act lets one of the actors do something.
func (h *randomHistory) act() {
	h.now = h.now.Add(time.Duration(h.r.IntN(40)) * time.Second)
	switch n := h.r.IntN(100); {
	case n < 40:
		h.note("pass")
		h.pass()
	case n < 65:
		h.note("StatefulSet controller")
		h.statefulSetController()
	case n < 85:
		h.heal(h.r.IntN(4) > 0)
	case n < 95:
		h.user()
	default:
		h.harm()
	}
}

// heal makes a group ready that can be.
func (h *randomHistory) heal(one bool) {
	for _, i := range h.all() {
		p := h.pods[i]
		if p.ready || p.deleting || h.broken[p.key] {
			continue
		}
		h.note("group %d is ready", i)
		p.ready, p.taken = true, false
		if one {
			return
		}
	}
}

func (h *randomHistory) user() {
	h.world.spec(func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		switch h.r.IntN(7) {
		case 0, 1:
			image := fmt.Sprint(1 + h.r.IntN(4))
			h.note("image %s", image)
			h.image(image)(s)
		case 2:
			s.Replicas = ptr.To(int32(h.r.IntN(7)))
			h.note("replicas %d", *s.Replicas)
		case 3:
			p := int32(h.r.IntN(5) * h.r.IntN(2))
			h.note("partition %d", p)
			h.partition(p)(s)
		case 4:
			u, sg := h.bounds()
			h.note("unavailable %d, surge %d", u, sg)
			c := s.RolloutStrategy.RollingUpdateConfiguration
			c.MaxUnavailable, c.MaxSurge = ptr.To(intstr.FromInt32(u)), ptr.To(intstr.FromInt32(sg))
		case 5:
			s.Paused = ptr.To(h.r.IntN(2) == 0)
			h.note("paused %t", *s.Paused)
		case 6:
			n := int32(1 + h.r.IntN(3))
			h.note("size %d", n)
			s.LeaderWorkerTemplate.GroupSize = &n
		}
	})
	h.seeKey()
}

// seeKey notes the key of the present spec. Image 3 never becomes ready.
func (h *randomHistory) seeKey() {
	if h.set.Spec.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Image == "3" {
		h.broken[revisionOf(h.observe()).key] = true
	}
}

// harm does what users and machines do to children, and to this controller.
func (h *randomHistory) harm() {
	switch h.r.IntN(5) {
	case 0:
		if all := h.all(); len(all) > 0 {
			i := all[h.r.IntN(len(all))]
			h.note("group %d fails", i)
			h.pods[i].fail(h.now)
		}
	case 1:
		if all := h.all(); len(all) > 0 {
			i := all[h.r.IntN(len(all))]
			h.note("leader %d is deleted", i)
			h.pods[i].deleting = true
			h.pods[i].fail(h.now)
		}
	case 2:
		h.note("the controller restarts")
		h.applied = ""
	case 3:
		h.note("refusals: %t", h.refuse == nil)
		if h.refuse == nil {
			h.refuse = func(*appsv1.StatefulSet) string { return "forbidden" }
		} else {
			h.refuse = nil
		}
	case 4:
		h.note("the leader StatefulSet is edited")
		if h.leader != nil {
			h.leader = h.leader.DeepCopy()
			h.leader.Spec.ServiceName = "edited"
		}
	}
}

func (h *randomHistory) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// pass does a pass of the controller, and checks that the order of lists does not matter.
func (h *randomHistory) pass() {
	o := h.observe()
	was := decide(h.t, o)
	h.r.Shuffle(len(o.Leaders), func(i, j int) { o.Leaders[i], o.Leaders[j] = o.Leaders[j], o.Leaders[i] })
	h.r.Shuffle(len(o.Workers), func(i, j int) { o.Workers[i], o.Workers[j] = o.Workers[j], o.Workers[i] })
	h.r.Shuffle(len(o.Revisions), func(i, j int) { o.Revisions[i], o.Revisions[j] = o.Revisions[j], o.Revisions[i] })
	h.r.Shuffle(len(o.Services), func(i, j int) { o.Services[i], o.Services[j] = o.Services[j], o.Services[i] })
	if again := decide(h.t, o); !reflect.DeepEqual(was, again) {
		h.t.Errorf("another plan for the same state:\n%+v\n%+v", was, again)
	}
	h.step()
	if h.leader != nil {
		h.note("%s of %d", h.world, helper.Replicas(h.set))
	}
}

// check checks what always holds. Updates do not wait for groups that have been broken for long.
func (h *randomHistory) check() {
	h.t.Helper()
	if h.ups > 0 {
		h.t.Error("the partition went up without a new revision")
	}
	u, s := helper.MaxUnavailable(h.set), helper.MaxSurge(h.set)
	down := int32(0)
	for i, p := range h.pods {
		if p.taken && i < helper.Replicas(h.set) && h.now.Sub(p.since) < brokenAfter {
			down++
		}
	}
	if down == 0 {
		h.allowed = 0
	}
	h.allowed = max(h.allowed, u+s)
	if down > h.allowed {
		h.t.Errorf("%d groups are down because of the update, more than %d", down, h.allowed)
	}
	if n := len(h.revisions); n > maxUnused+len(h.pods)+3 {
		h.t.Errorf("%d revisions", n)
	}
}

// end lets the history come to its end, and checks that it is one.
func (h *randomHistory) end() {
	h.t.Helper()
	h.refuse = nil
	h.world.spec(func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.Paused = nil
		h.partition(0)(s)
		if s.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Image == "3" {
			h.image("4")(s)
		}
	})
	h.note("the end begins")
	for range 300 {
		h.now = h.now.Add(time.Minute)
		h.pass()
		h.statefulSetController()
		h.heal(true)
		h.check()
		if h.t.Failed() {
			return
		}
		if h.available() && partitionOf(h.leader) == 0 && h.set.Status.ObservedGeneration == h.set.Generation {
			break
		}
	}
	h.stabilize()
	want := helper.Replicas(h.set)
	if c := count(look(h.observe()).groups, want, 0); c.done != want || int32(len(h.pods)) != want || !h.available() || partitionOf(h.leader) != 0 {
		h.t.Errorf("the update does not end: %s of %d: %s", h.world, want, h.groups())
	}
	if limit := int(*h.set.Spec.RevisionHistoryLimit); len(h.revisions) > limit+1 {
		h.t.Errorf("%d revisions are left, more than %d", len(h.revisions), limit+1)
	}
	keys := map[string]bool{}
	for _, r := range h.revisions {
		keys[r.Labels[leaderworkersetv1.RevisionKey]] = true
	}
	if len(keys) != len(h.revisions) || !slices.ContainsFunc(h.revisions, func(r *appsv1.ControllerRevision) bool { return helper.SameRevision(h.set, r.Data.Raw) }) {
		h.t.Errorf("revisions %v", keys)
	}
}
