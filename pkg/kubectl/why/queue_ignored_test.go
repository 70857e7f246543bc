// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// kueueAbsent has the cluster answer that it has no Kueue.
func kueueAbsent(e *Evidence) { e.Kueue.Absent = true }

func TestQueueIgnored(t *testing.T) {
	queued := func(e *Evidence) { e.JobSet.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"} }
	sequence := func(changes ...func(*Evidence)) *Evidence {
		e := runningSequence()
		queuedStep(e)
		e.Jobs[0].Spec.Suspend = nil
		for _, change := range changes {
			change(e)
		}
		return e
	}
	groups := func(changes ...func(*leaderWorkerSetCluster)) *Evidence {
		c := runningLeaderWorkerSet()
		c.Set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
		for _, change := range changes {
			change(c)
		}
		c.Kueue.Absent = true
		return c.evidence()
	}
	child := func(e *Evidence) {
		e.Jobs, e.Pods = nil, nil
		e.Child = healthy(queued, kueueAbsent)
	}
	for name, tc := range map[string]struct {
		evidence *Evidence
		want     string
	}{
		"no queue":           {healthy(kueueAbsent), ""},
		"Kueue is absent":    {healthy(queued, kueueAbsent), "so that the set runs without quota"},
		"Kueue is installed": {healthy(queued, func(e *Evidence) { e.Kueue.Served = true }), ""},
		"nobody has asked":   {healthy(queued), ""},
		"the set waits":      {healthy(queued, kueueAbsent, func(e *Evidence) { e.JobSet.Spec.Suspend = ptr.To(true) }), ""},

		"a sequence":               {sequence(kueueAbsent), "names the queue gpu, but the cluster does not serve kueue.x-k8s.io: Kueue is not installed, so that the sequence runs without quota"},
		"a sequence that waits":    {sequence(kueueAbsent, func(e *Evidence) { e.Jobs[0].Spec.Suspend = ptr.To(true) }), ""},
		"a sequence with Kueue":    {sequence(func(e *Evidence) { e.Kueue.Served = true }), ""},
		"a sequence, its JobSet":   {sequence(child), "step 2/3 (transform): the label kueue.x-k8s.io/queue-name names the queue team, but"},
		"a LeaderWorkerSet":        {groups(), "names the queue team, but the cluster does not serve kueue.x-k8s.io: Kueue is not installed, so that the set runs without quota"},
		"groups that are held":     {groups(heldGroups(1)), ""},
		"groups that have no gate": {groups(func(c *leaderWorkerSetCluster) { c.Set.Labels = nil }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			notes := diagnose(tc.evidence).Notes
			if got := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "runs without quota") }); got != (tc.want != "") {
				t.Errorf("got %t: %q", got, notes)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("got %q, want %q", all, tc.want)
			}
		})
	}
}

// diagnose explains an object of any kind.
func diagnose(e *Evidence) *Report {
	switch {
	case e.Sequence != nil:
		return diagnoseSequence(e)
	case e.Set != nil:
		return diagnoseLeaderWorkerSet(e)
	}
	return Diagnose(e)
}

// TestLoadAsksForKueueOnceGroupsNameAQueue asks no more than whether the API is served, and takes a refusal for an answer.
func TestLoadAsksForKueueOnceGroupsNameAQueue(t *testing.T) {
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	for name, tc := range map[string]struct {
		err            error
		served, absent bool
	}{
		"served":    {nil, true, false},
		"absent":    {notServed, false, true},
		"forbidden": {forbidden("workloads"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := runningLeaderWorkerSet()
			c.Set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
			w := newEnv(t, &Evidence{})
			w.dynamic.PrependReactor("list", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) { return tc.err != nil, nil, tc.err })
			l := &loader{Clients: w.Clients, e: c.evidence()}
			l.readKueueOfLeaderWorkerSet(t.Context())
			if k := l.e.Kueue; k.Served != tc.served || k.Absent != tc.absent || len(l.e.NotLookedAt) > 0 {
				t.Errorf("%+v, not looked at %v", k, l.e.NotLookedAt)
			}
		})
	}
}
