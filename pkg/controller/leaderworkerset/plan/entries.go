// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const (
	// maxLongMessages is how many entries keep the whole message of their first cause: those that were recreated last. The others keep
	// maxShortMessage bytes of it, so that a status of the highest number of entries is not too large for etcd.
	maxLongMessages, maxShortMessage = 100, 128
)

// storedEntries returns the entries that are stored, by ascending index: none of groups that are no more, none that says nothing, and the
// most important ones if there are too many.
func storedEntries(r *restarts) []leaderworkersetv1.GroupStatus {
	above := helper.Replicas(r.Set) + helper.MaxSurge(r.Set)
	var list []leaderworkersetv1.GroupStatus
	for index, e := range r.entries {
		says := e != leaderworkersetv1.GroupStatus{Index: index}
		if says && index >= 0 && (index < above || r.groupAt(index) != nil) {
			list = append(list, e)
		}
	}
	if len(list) > leaderworkersetv1.MaxGroupStatuses {
		slices.SortFunc(list, byImportance(r.snapshot))
		list = list[:leaderworkersetv1.MaxGroupStatuses]
	}
	shorten(list)
	slices.SortFunc(list, func(a, b leaderworkersetv1.GroupStatus) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// byImportance orders entries, the most important first: entries of groups with a decision that is not carried out
// yet, which must not be lost, then those of groups that are being built, and then entries with the most restarts.
func byImportance(s *snapshot) func(a, b leaderworkersetv1.GroupStatus) int {
	underway := func(e *leaderworkersetv1.GroupStatus) bool {
		g := s.groupAt(e.Index)
		return g != nil && e.RestartedLeader == g.leader.UID && !g.leader.Deleting
	}
	return func(a, b leaderworkersetv1.GroupStatus) int {
		return cmp.Or(int(one(underway(&b))-one(underway(&a))), int(one(b.Incomplete)-one(a.Incomplete)),
			cmp.Compare(b.Restarts, a.Restarts), byLastRestart(a, b))
	}
}

// byLastRestart orders entries: those first that were recreated last.
func byLastRestart(a, b leaderworkersetv1.GroupStatus) int {
	return cmp.Or(cmp.Compare(unix(b.LastRestartTime), unix(a.LastRestartTime)), cmp.Compare(a.Index, b.Index))
}

func unix(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// shorten cuts the messages of all but the latest first causes, and orders the entries by their last restart if there are many.
func shorten(list []leaderworkersetv1.GroupStatus) {
	if len(list) <= maxLongMessages {
		return
	}
	slices.SortFunc(list, byLastRestart)
	for i := range list[maxLongMessages:] {
		e := &list[maxLongMessages+i]
		if e.FirstCause != nil && len(e.FirstCause.Message) > maxShortMessage {
			cause := *e.FirstCause
			cause.Message = strings.ToValidUTF8(cause.Message[:maxShortMessage], "")
			e.FirstCause = &cause
		}
	}
}
