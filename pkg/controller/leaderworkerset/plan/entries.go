// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
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

// store puts the entries into the next status, by ascending index: none of groups that are no more, none that says nothing, and the most
// important ones if there are too many.
func (r *restarts) store() {
	exists := make(map[int32]bool, len(r.groups))
	for i := range r.groups {
		exists[r.groups[i].index] = true
	}
	above := helper.Replicas(r.Set) + helper.MaxSurge(r.Set)
	for index, e := range r.entries {
		says := *e != leaderworkersetv1.GroupStatus{Index: index}
		if index < 0 || !says || index >= above && !exists[index] {
			delete(r.entries, index)
		}
	}
	if len(r.entries) > leaderworkersetv1.MaxGroupStatuses {
		for _, e := range r.byImportance()[leaderworkersetv1.MaxGroupStatuses:] {
			delete(r.entries, e.Index)
		}
	}
	r.shorten()
	next := make([]leaderworkersetv1.GroupStatus, 0, len(r.entries))
	for _, index := range slices.Sorted(maps.Keys(r.entries)) {
		next = append(next, *r.entries[index])
	}
	r.st.next.Groups = nil
	if len(next) > 0 {
		r.st.next.Groups = next
	}
}

// byImportance returns the entries, the most important first: entries of groups with a decision that is not carried out
// yet, which must not be lost, then those of groups that are being built, and then entries with the most restarts.
func (r *restarts) byImportance() []*leaderworkersetv1.GroupStatus {
	underway := make(map[int32]bool)
	for i := range r.groups {
		g := &r.groups[i]
		if e := r.entries[g.index]; e != nil && e.RestartedLeader == g.leader.UID && !g.leader.Deleting {
			underway[g.index] = true
		}
	}
	return slices.SortedFunc(maps.Values(r.entries), func(a, b *leaderworkersetv1.GroupStatus) int {
		return cmp.Or(int(one(underway[b.Index])-one(underway[a.Index])), int(one(b.Incomplete)-one(a.Incomplete)),
			cmp.Compare(b.Restarts, a.Restarts), byLastRestart(a, b))
	})
}

// byLastRestart orders entries: those first that were recreated last.
func byLastRestart(a, b *leaderworkersetv1.GroupStatus) int {
	return cmp.Or(cmp.Compare(unix(b.LastRestartTime), unix(a.LastRestartTime)), cmp.Compare(a.Index, b.Index))
}

func unix(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// shorten cuts the messages of all but the latest first causes.
func (r *restarts) shorten() {
	if len(r.entries) <= maxLongMessages {
		return
	}
	for _, e := range slices.SortedFunc(maps.Values(r.entries), byLastRestart)[maxLongMessages:] {
		if e.FirstCause != nil && len(e.FirstCause.Message) > maxShortMessage {
			cause := *e.FirstCause
			cause.Message = strings.ToValidUTF8(cause.Message[:maxShortMessage], "")
			e.FirstCause = &cause
		}
	}
}
