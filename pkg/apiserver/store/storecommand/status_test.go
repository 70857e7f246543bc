// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestStatus(t *testing.T) {
	const now, before = 12 * time.Second, 10*time.Minute + 30*time.Second
	served := refusal(now)
	served.Served, served.JobsAtStake, served.Jobs = true, -1, nil
	many := refusal(before)
	many.AtStake = []witness.Loss{
		{Resource: "statefulsets.apps", Kind: "StatefulSet", Count: 24, Names: []string{"ns/s"}},
		{Resource: "jobs.batch", Kind: "Job", Count: 200, Names: strings.Split("ns/a ns/b ns/c ns/d ns/e", " ")},
		{Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Count: 3},
	}
	group := refusal(now)
	group.Reason, group.Groups = witness.ReasonUnknownOwners, []string{"disaggregatedset.x-k8s.io", "leaderworkerset.x-k8s.io"}
	none := refusal(now)
	none.JobsAtStake, none.Jobs = 0, nil
	restored := &witness.Restored{Revision: 812, Time: metav1.NewTime(time.Unix(1_700_000_000, 0))}
	cluster := witness.NewCluster("cdf818194e3a8c32")
	for name, tc := range map[string]struct {
		record *witness.Record
		code   int
		want   string
	}{
		"there is no witness": {nil, 3, `State:   NoWitness, ConfigMap kube-system/jobset-apiserver-store has no record

No server has served a store of this cluster yet, the record was deleted, or the server runs with --store-witness=false.
A server writes the record when it starts. The manifests have the ConfigMap; the server may not create it.
`},
		"the store is served": {&witness.Record{UUID: oldUUID, Floor: 1234}, 0, `State:   Serving, no server refuses the store
Store:   11111111-1111-4111-8111-111111111111, at revision 1234 or later
`},
		"three members have the store": {&witness.Record{UUID: oldUUID, Floor: 1234, Cluster: cluster.With([]witness.Member{
			{Name: "js-0", ID: "a1"}, {Name: "js-1", ID: "b2", Learner: true}, {Name: "js-2", ID: "c3"},
		})}, 0, `State:     Serving, no server refuses the store
Store:     11111111-1111-4111-8111-111111111111, at revision 1234 or later
Members:   js-0 (a1), js-1 (b2, joins and has no vote yet), js-2 (c3) of cluster cdf818194e3a8c32
`},
		"members were not reported": {&witness.Record{UUID: oldUUID, Floor: 1234, Cluster: cluster}, 0, `State:     Serving, no server refuses the store
Store:     11111111-1111-4111-8111-111111111111, at revision 1234 or later
Members:   not reported yet, cluster cdf818194e3a8c32
`},
		"most members have lost their data": {&witness.Record{UUID: oldUUID, Floor: 1234, Cluster: &witness.Cluster{
			ID: "a", Empty: []witness.EmptyMember{{Name: "js-2", Time: metav1.Now()}, {Name: "js-0", Time: metav1.Now()}},
		}}, 2, `State:     Refused, a server refuses the store and answers no request
Store:     11111111-1111-4111-8111-111111111111, at revision 1234 or later
Members:   not reported yet, cluster a
Lost:      the data of js-0 and js-2, which is most of the members: put the volumes back, or restore a backup on the first member
`},
		"a store was restored": {&witness.Record{UUID: newUUID, Floor: 900, Restored: restored}, 0, `State:      Serving, no server refuses the store
Store:      22222222-2222-4222-8222-222222222222, at revision 900 or later
Restored:   accepted by an administrator at 2023-11-14T22:13:20Z, revision 812
`},
		"a store is refused": {&witness.Record{UUID: oldUUID, Floor: 1234, Refusal: refusal(now)}, 2, `State:        Refused, a server refuses the store and answers no request
Store:        11111111-1111-4111-8111-111111111111, at revision 1234 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     2 Jobs (ns/a, ns/b)

What was found, what is at stake, and what to do.
`},
		"groups are refused": {&witness.Record{UUID: oldUUID, Floor: 1234, Refusal: group}, 2, `State:        Refused, a server refuses API groups, and serves the others
Store:        11111111-1111-4111-8111-111111111111, at revision 1234 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       UnknownOwners
API groups:   disaggregatedset.x-k8s.io, leaderworkerset.x-k8s.io
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     2 Jobs (ns/a, ns/b)

What was found, what is at stake, and what to do.
`},
		"groups are accepted": {&witness.Record{UUID: oldUUID, Floor: 1234, Refusal: group, Accepted: &witness.Acceptance{NewUUID: newUUID, Revision: 7}}, 2, `State:        Accepted, the API groups are accepted; the server is about to serve them
Store:        11111111-1111-4111-8111-111111111111, at revision 1234 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       UnknownOwners
API groups:   disaggregatedset.x-k8s.io, leaderworkerset.x-k8s.io
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     2 Jobs (ns/a, ns/b)
Accepted:     UUID 22222222-2222-4222-8222-222222222222 at revision 7

What was found, what is at stake, and what to do.
`},
		"the first store is refused, by a server that has stopped": {&witness.Record{Refusal: many}, 2, `State:        Refused, a server refuses the store and answers no request
Store:        none was ever served
Refused by:   jobset-apiserver-0, which confirmed it 10m ago for the last time: it may have stopped, unless its clock differs from the one here
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     24 StatefulSets (ns/s and 23 more), 200 Jobs (ns/a, ns/b, ns/c, ns/d, ns/e and 195 more) and 3 PersistentVolumeClaims

What was found, what is at stake, and what to do.
`},
		"the clock of the server is ahead": {&witness.Record{Refusal: refusal(-time.Hour)}, 2, `State:        Refused, a server refuses the store and answers no request
Store:        none was ever served
Refused by:   jobset-apiserver-0, which confirmed it at 2023-11-14T23:13:20Z by its clock, which is ahead of the one here
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     2 Jobs (ns/a, ns/b)

What was found, what is at stake, and what to do.
`},
		"the server had served the store": {&witness.Record{UUID: oldUUID, Floor: 1, Refusal: served}, 2, `State:        Refused, a server refuses the store and answers no request
Store:        11111111-1111-4111-8111-111111111111, at revision 1 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     an unknown number of objects
Served:       yes: the server had answered before it noticed; restart kube-controller-manager once the right store is back

What was found, what is at stake, and what to do.
`},
		"the store is accepted": {&witness.Record{UUID: oldUUID, Floor: 1, Refusal: none, Accepted: &witness.Acceptance{NewUUID: newUUID, Revision: 7}}, 2,
			`State:        Accepted, the store is accepted; the server that refuses it is about to serve it
Store:        11111111-1111-4111-8111-111111111111, at revision 1 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     nothing
Accepted:     UUID 22222222-2222-4222-8222-222222222222 at revision 7

What was found, what is at stake, and what to do.
`},
		"another store is accepted": {&witness.Record{UUID: oldUUID, Floor: 1, Refusal: none, Accepted: &witness.Acceptance{NewUUID: oldUUID, Revision: 7}}, 2,
			`State:        Refused, a server refuses the store and answers no request
Store:        11111111-1111-4111-8111-111111111111, at revision 1 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     nothing
Accepted:     UUID 11111111-1111-4111-8111-111111111111 at revision 7: without effect, what is refused has UUID 22222222-2222-4222-8222-222222222222 at revision 7

What was found, what is at stake, and what to do.
`},
		"an older state is accepted": {&witness.Record{UUID: oldUUID, Floor: 1, Refusal: none, Accepted: &witness.Acceptance{NewUUID: newUUID, Revision: 6}}, 2,
			`State:        Refused, a server refuses the store and answers no request
Store:        11111111-1111-4111-8111-111111111111, at revision 1 or later
Refused by:   jobset-apiserver-0, which confirmed it 12s ago
Reason:       EmptyStore
Found:        UUID 22222222-2222-4222-8222-222222222222 at revision 7
At stake:     nothing
Accepted:     UUID 22222222-2222-4222-8222-222222222222 at revision 6: without effect, what is refused has UUID 22222222-2222-4222-8222-222222222222 at revision 7

What was found, what is at stake, and what to do.
`},
		"a store is accepted, and the right one is back": {&witness.Record{UUID: oldUUID, Floor: 1, Accepted: &witness.Acceptance{NewUUID: newUUID, Revision: 7}}, 0,
			`State:      Serving, no server refuses the store
Store:      11111111-1111-4111-8111-111111111111, at revision 1 or later
Accepted:   UUID 22222222-2222-4222-8222-222222222222 at revision 7: without effect, no server refuses a store
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			status := statusOf(tc.record, testNow)
			if err := status.write(&out, testNow); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			m := newCluster(t)
			if tc.record != nil {
				m.with(*tc.record)
			}
			if got := m.run("status"); got.code != tc.code || got.message != "" || !strings.HasPrefix(got.out, "State:") {
				t.Errorf("the command ends with code %d, %q: %s", got.code, got.message, got.out)
			}
		})
	}
}

func TestStatusAsData(t *testing.T) {
	confirmed := refusal(0)
	confirmed.Time = metav1.Now()
	m := newCluster(t).with(witness.Record{UUID: oldUUID, Floor: 1234, Refusal: confirmed, Accepted: &witness.Acceptance{NewUUID: newUUID, Revision: 6}})
	got := m.run("status", "-o", "json")
	var fields map[string]any
	if err := json.Unmarshal([]byte(got.out), &fields); err != nil || got.code != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	refused := fields["refusal"].(map[string]any)
	if _, ok := refused["time"].(string); !ok {
		t.Errorf("time of the refusal: %v", refused["time"])
	}
	delete(refused, "time")
	want := map[string]any{
		"apiVersion": "store.jobset-apiserver.io/v1alpha1", "kind": "StoreStatus", "state": "Refused", "uuid": oldUUID, "floor": 1234.0, "confirmed": true,
		"refusal": map[string]any{
			"reason": "EmptyStore", "message": "What was found, what is at stake, and what to do.", "server": "jobset-apiserver-0",
			"newUUID": newUUID, "revision": 7.0, "jobsAtStake": 2.0, "jobs": []any{"ns/a", "ns/b"},
		},
		"accepted": map[string]any{"newUUID": newUUID, "revision": 6.0},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	for args, want := range map[string]result{
		"-o jsonpath={.refusal.newUUID}": {out: newUUID, code: 2},
		"-o wide": {code: 1, message: `--output: must be one of json, yaml, kyaml, go-template, go-template-file, template, templatefile, jsonpath, ` +
			`jsonpath-as-json, jsonpath-file, not "wide"`},
	} {
		if diff := cmp.Diff(want, m.run(append([]string{"status"}, strings.Fields(args)...)...), cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if got := m.run("status", "-o", "yaml"); !strings.HasPrefix(got.out, "accepted:\n  newUUID: "+newUUID) {
		t.Error(got.out)
	}
	if got := newCluster(t).run("status", "-o", "yaml"); got.out != "apiVersion: store.jobset-apiserver.io/v1alpha1\nkind: StoreStatus\nstate: NoWitness\n" || got.code != 3 {
		t.Errorf("%+v", got)
	}
}
