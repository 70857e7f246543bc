// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// maxGoneLeaders is how many leader pods of one set are remembered that are gone. Each pass evaluates all that it can,
// so that more come only while no pass is made.
const maxGoneLeaders = 1000

// goneLeaders are the leader pods of sets that are gone, until a pass has evaluated what that means. The next pod of a
// name follows within moments, so that no cache shows that one was missing.
type goneLeaders struct {
	mu sync.Mutex
	of map[cache.ObjectName][]plan.Pod
}

func newGoneLeaders() *goneLeaders { return &goneLeaders{of: map[cache.ObjectName][]plan.Pod{}} }

func (g *goneLeaders) note(key cache.ObjectName, pod plan.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.of[key]) < maxGoneLeaders {
		g.of[key] = append(g.of[key], pod)
	}
}

func (g *goneLeaders) noted(key cache.ObjectName) []plan.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.of[key])
}

// forget drops the pods that were evaluated; all of them if evaluated is nil.
func (g *goneLeaders) forget(key cache.ObjectName, evaluated map[types.UID]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := slices.DeleteFunc(g.of[key], func(pod plan.Pod) bool { return evaluated == nil || evaluated[pod.UID] })
	if len(left) == 0 {
		delete(g.of, key)
		return
	}
	g.of[key] = left
}

// LeaderGone notes that a leader pod of a set is gone. The active controller calls it when the watch of pods shows
// that. Pods of unknown sets are ignored.
func (s *Syncer) LeaderGone(key cache.ObjectName, pod plan.Pod) {
	if set, err := s.deps.Caches.Set(key); err == nil && set != nil {
		s.gone.note(key, pod)
	}
}

// noteEvaluated remembers what was decided about leader pods that were deleted.
func (s *Syncer) noteEvaluated(key cache.ObjectName, uids []types.UID) {
	if len(uids) == 0 {
		s.evaluated.Forget(key)
		return
	}
	evaluated := uidSet(uids)
	s.evaluated.Note(key, evaluated)
	s.gone.forget(key, evaluated)
}

// noteRecorded forgets leader pods that are gone and that the stored status names. The status that is about to be stored may name
// others, and its answer may be lost.
func (s *Syncer) noteRecorded(key cache.ObjectName, uids []types.UID) {
	if len(uids) > 0 {
		s.gone.forget(key, uidSet(uids))
	}
}

func uidSet(uids []types.UID) map[types.UID]bool {
	out := make(map[types.UID]bool, len(uids))
	for _, uid := range uids {
		out[uid] = true
	}
	return out
}
