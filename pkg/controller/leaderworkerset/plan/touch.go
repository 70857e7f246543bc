// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// touchAfter is when StatefulSets that lack pods are touched, after the server that mutates pods has returned. Their
// controller looks at them more and more rarely while pods are refused. It looks at those that are younger than the
// time anyway.
var touchAfter = []time.Duration{2 * time.Second, 15 * time.Second, 35 * time.Second}

// touch asks for another look at StatefulSets that lack pods since the server of the set was away. Nothing is touched at
// rest, and never more often than a few times after each interruption. A StatefulSet that its controller has not looked
// at is touched only if it is older than the interruption: its time is of the clock of another server, and does not say
// so of others.
func touch(s *snapshot) (p Plan) {
	due, next := touchTimes(s.Now, s.ServedSince)
	if due.IsZero() && next == 0 {
		return p
	}
	lacks := lacksLeaders(s.Leader)
	if lacks {
		p.TouchLeader = touchedAt(s.Leader).Before(due) && (s.Leader.Status.ObservedGeneration > 0 || s.Leader.CreationTimestamp.Time.Before(due))
	}
	for i := range s.groups {
		if !s.groups[i].lacksPods() {
			continue
		}
		lacks = true
		w := s.groups[i].workers
		if !w.touchedAt(due) {
			continue
		}
		if len(p.TouchWorkers) == maxGroupWrites {
			p.More = true
			break
		}
		p.TouchWorkers = append(p.TouchWorkers, Touch{Ref: w.Ref, ResourceVersion: w.ResourceVersion})
	}
	if lacks {
		p.RequeueAfter = next
	}
	return p
}

// touchedAt returns whether the StatefulSet of the workers is to be touched at that time.
func (w *Workers) touchedAt(due time.Time) bool {
	return w.Touched.Before(due) && (w.Observed || w.CreatedAt.Time.Before(due))
}

// lacksLeaders returns whether leaders have not been created that should be there.
func lacksLeaders(leader *appsv1.StatefulSet) bool {
	return leader != nil && leader.Status.Replicas < ptr.Deref(leader.Spec.Replicas, 1)
}

// lacksPods returns whether workers of the group have not been created that should be there.
func (g *group) lacksPods() bool {
	w := g.workers
	return w != nil && !w.Deleting && !g.leader.Deleting && w.Created < w.Replicas
}

// touchTimes returns the last time at which StatefulSets are touched that is not in the future, zero if there is none,
// and how long it is to the next one; 0 if there is none. The last time is past after as long as those before took, so
// that it ends.
func touchTimes(now metav1.Time, served time.Time) (due time.Time, next time.Duration) {
	passed := now.Sub(served)
	if served.IsZero() || passed > 2*touchAfter[len(touchAfter)-1] {
		return time.Time{}, 0
	}
	for _, after := range touchAfter {
		if passed < after {
			return due, after - passed
		}
		due = served.Add(after)
	}
	return due, 0
}

func touchedAt(sts *appsv1.StatefulSet) time.Time {
	at, err := time.Parse(time.RFC3339, sts.Annotations[TouchedKey])
	if err != nil {
		return time.Time{}
	}
	return at
}
