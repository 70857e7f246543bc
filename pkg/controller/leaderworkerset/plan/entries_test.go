// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// TestEntriesAreBounded has all of very many groups fail at once, several times: as many are underway as there are
// entries, and none restarts twice.
func TestEntriesAreBounded(t *testing.T) {
	const groups = 1300
	f := newFixture(t, groups, 1)
	f.stabilize()
	for i := range f.Leaders {
		restarted(&f.Leaders[i])
	}
	long := strings.Repeat("é", 512)
	f.Causes = map[types.UID]hostplan.Known[*jobsetv1alpha2.FailureCause]{}
	for i := range f.Leaders {
		f.Causes[f.Leaders[i].UID] = hostplan.Of(&jobsetv1alpha2.FailureCause{Job: "s", Pod: f.Leaders[i].Name, Reason: "OOMKilled", Message: long})
	}
	times := map[types.UID]int{}
	for pass := 0; len(times) < groups; pass++ {
		if pass > 200 {
			t.Fatalf("only %d of %d groups were recreated", len(times), groups)
		}
		before := len(f.Set.Status.Groups)
		p := f.pass()
		if n := len(f.Set.Status.Groups) - before; n > maxGroupWrites {
			t.Fatalf("a plan decides on the restarts of %d groups", n)
		}
		if n := len(f.Set.Status.Groups); n > leaderworkersetv1.MaxGroupStatuses {
			t.Fatalf("status.groups has %d entries", n)
		}
		if n := len(p.DeleteLeaders); n > maxGroupWrites {
			t.Fatalf("a plan deletes %d leaders", n)
		}
		gone := map[types.UID]bool{}
		for _, d := range p.DeleteLeaders {
			times[d.UID]++
			gone[d.UID] = true
		}
		for i := range f.Leaders {
			if l := &f.Leaders[i]; gone[l.UID] {
				l.UID, l.Restarted = types.UID(l.Name+"/2"), false
			}
		}
		f.later(time.Second)
	}
	for uid, n := range times {
		if n != 1 {
			t.Errorf("leader %s was deleted %d times", uid, n)
		}
	}
	whole, cut := 0, 0
	for _, e := range f.Set.Status.Groups {
		switch len(e.FirstCause.Message) {
		case len(long):
			whole++
		case maxShortMessage:
			cut++
		default:
			t.Fatalf("a message has %d bytes", len(e.FirstCause.Message))
		}
	}
	if whole != maxLongMessages || cut != leaderworkersetv1.MaxGroupStatuses-maxLongMessages {
		t.Errorf("%d messages are whole and %d cut, want %d and %d", whole, cut, maxLongMessages, leaderworkersetv1.MaxGroupStatuses-maxLongMessages)
	}
}

// TestEntriesOfGroupsThatAreNoMore removes entries of groups above replicas once their pods are gone, and only then.
func TestEntriesOfGroupsThatAreNoMore(t *testing.T) {
	f := newFixture(t, 4, 1)
	f.stabilize()
	failAgain(f, 0)
	failAgain(f, 3)
	f.Set.Spec.Replicas = ptr.To[int32](2)
	f.stabilize()
	if got := entriesOf(f); got != "0 3" {
		t.Errorf("entries of the groups %q while the pod of group 3 exists, want 0 and 3", got)
	}
	f.Leaders = f.Leaders[:0]
	f.stabilize()
	if got := entriesOf(f); got != "0" {
		t.Errorf("entries of the groups %q, want 0", got)
	}
}

func entriesOf(f *fixture) string {
	var out []string
	for _, e := range f.Set.Status.Groups {
		out = append(out, fmt.Sprint(e.Index))
	}
	return strings.Join(out, " ")
}

// TestDroppedEntries drops those with the fewest restarts, and never one of a group about which something is decided.
func TestDroppedEntries(t *testing.T) {
	const groups = leaderworkersetv1.MaxGroupStatuses + 2
	f := newFixture(t, groups, 1)
	f.stabilize()
	for i := range int32(leaderworkersetv1.MaxGroupStatuses) {
		f.Set.Status.Groups = append(f.Set.Status.Groups, leaderworkersetv1.GroupStatus{Index: i, Restarts: 5, LastRestartTime: &f.Now})
	}
	f.Set.Status.Groups[7].Restarts, f.Set.Status.Groups[9].Restarts = 2, 2
	f.Set.Status.Groups[9].LastRestartTime = nil
	restarted(&f.Leaders[groups-1])
	f.pass()
	if f.status(9).Index != -1 || f.status(7).Index != 7 || f.status(groups-1).Restarts != 1 {
		t.Errorf("entries 9: %+v, 7: %+v, %d: %+v; want that of 9 dropped", f.status(9), f.status(7), groups-1, f.status(groups-1))
	}
}
