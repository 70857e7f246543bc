// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestDecide(t *testing.T) {
	key := func(uuid string, revision int64) *witness.Found {
		return &witness.Found{Key: witness.Key{UUID: uuid, ClusterUID: "c", Format: 1}, ModRevision: revision, Revision: 10}
	}
	of := func(format int) *witness.Found {
		return &witness.Found{Key: witness.Key{UUID: "a", ClusterUID: "other", Format: format}, ModRevision: 9}
	}
	behind, newer := key("a", 9), key("a", 9)
	behind.Behind = 10
	newer.Format = witness.Format + 1
	record := &witness.Record{UUID: "a", Floor: 5}
	for name, tc := range map[string]struct {
		key    *witness.Found
		record *witness.Record
		step   witness.Step
		reason witness.Reason
	}{
		"neither half":                        {nil, nil, witness.StepFirst, ""},
		"an empty store":                      {nil, record, witness.StepRefuse, witness.ReasonEmptyStore},
		"a deleted record":                    {key("a", 9), nil, witness.StepRecord, ""},
		"a foreign store":                     {key("b", 9), record, witness.StepRefuse, witness.ReasonForeignStore},
		"another cluster":                     {of(1), record, witness.StepRefuse, witness.ReasonOtherCluster},
		"another cluster, without a record":   {of(1), nil, witness.StepRefuse, witness.ReasonOtherCluster},
		"a store that was rolled back":        {key("a", 4), record, witness.StepRefuse, witness.ReasonRolledBack},
		"a key at the floor":                  {key("a", 5), record, witness.StepServe, ""},
		"a key above the floor":               {key("a", 6), record, witness.StepServe, ""},
		"a copy that a server has noticed":    {behind, record, witness.StepRefuse, witness.ReasonRolledBack},
		"data of a newer version":             {newer, record, witness.StepRefuse, witness.ReasonNewerFormat},
		"data of a newer version, no record":  {newer, nil, witness.StepRefuse, witness.ReasonNewerFormat},
		"a newer version of another cluster":  {of(2), record, witness.StepRefuse, witness.ReasonNewerFormat},
		"a refusal before the first start":    {nil, &witness.Record{}, witness.StepFirst, ""},
		"a refusal in place of the record":    {key("a", 9), &witness.Record{}, witness.StepRecord, ""},
		"a rolled-back store of a foreign id": {key("b", 1), record, witness.StepRefuse, witness.ReasonForeignStore},
	} {
		if step, reason := witness.Decide(tc.key, tc.record, "c"); step != tc.step || reason != tc.reason {
			t.Errorf("%s: %s %q, want %s %q", name, step, reason, tc.step, tc.reason)
		}
	}
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	full := &witness.Record{
		UUID: "a", Floor: 1 << 60,
		Refusal:  &witness.Refusal{Reason: witness.ReasonEmptyStore, Message: "m", Server: "s", Time: now, NewUUID: "b", Revision: 7, JobsAtStake: -1, ClaimsAtStake: 3, Jobs: []string{"n/j"}},
		Accepted: &witness.Acceptance{NewUUID: "b", Revision: 7, AbandonJobs: true},
		Restored: &witness.Restored{Revision: 8, Time: now}, Cluster: witness.NewCluster("1f"),
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"other": "kept"}}
	refused := &witness.Record{Refusal: full.Refusal}
	for _, want := range []*witness.Record{refused, full, {UUID: "a", Floor: 3}} {
		if err := want.Write(cm); err != nil {
			t.Fatal(err)
		}
		got, err := witness.Read(cm)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"other": "kept", "uuid": "a", "floor": "3"}, cm.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	for want, data := range map[string]map[string]string{
		"data[uuid] of ConfigMap kube-system/jobset-apiserver-store: must not be empty": {"floor": "1"},
		"data[floor]":    {"uuid": "a", "floor": "x"},
		"data[refusal]":  {"uuid": "a", "floor": "1", "refusal": "{"},
		"data[accepted]": {"uuid": "a", "floor": "1", "accepted": "[]"},
		"data[restored]": {"uuid": "a", "floor": "1", "restored": "7"},
		"data[cluster]":  {"uuid": "a", "floor": "1", "cluster": "7"},
	} {
		if _, err := witness.Read(&corev1.ConfigMap{Data: data}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s", data, err, want)
		}
	}
	for _, data := range []map[string]string{nil, {"other": "x"}} {
		if record, err := witness.Read(&corev1.ConfigMap{Data: data}); record != nil || err != nil {
			t.Errorf("data %v, which is none of our data: %+v, %v", data, record, err)
		}
	}
}

func TestAcceptancesNameWhatWasFound(t *testing.T) {
	refusal := &witness.Refusal{NewUUID: "b", Revision: 7}
	for name, tc := range map[string]struct {
		accepted *witness.Acceptance
		want     bool
	}{
		"nothing is accepted":        {nil, false},
		"another UUID is accepted":   {&witness.Acceptance{NewUUID: "c", Revision: 7}, false},
		"another state is accepted":  {&witness.Acceptance{NewUUID: "b", Revision: 6}, false},
		"what was found is accepted": {&witness.Acceptance{NewUUID: "b", Revision: 7}, true},
	} {
		if got := (&witness.Record{Accepted: tc.accepted}).Accepts(refusal); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, groups := range []witness.Groups{nil, {}, {"jobset.x-k8s.io": "u1", "leaderworkerset.x-k8s.io": ""}} {
		want := witness.Key{UUID: "a", ClusterUID: "c", Format: 1, Version: "v1", Groups: groups}
		got, err := witness.DecodeKey(want.Encode())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	for _, value := range []string{"", "{", "{}", `{"clusterUID":"c"}`} {
		if _, err := witness.DecodeKey([]byte(value)); err == nil {
			t.Errorf("%q is a key", value)
		}
	}
}

// TestMembersThatAreEmpty: one member without data is replaced by the others. Two of three are no store any more.
func TestMembersThatAreEmpty(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cluster := witness.NewCluster("a")
	for i, step := range []struct {
		name  string
		after time.Duration
		want  []string
	}{
		{"m-2", 0, nil},
		{"m-2", 30 * time.Second, nil},
		{"m-0", time.Minute, []string{"m-0", "m-2"}},
		{"m-0", 3 * time.Minute, nil}, // the other one has found enough members, or has ended
		{"m-1", 3 * time.Minute, []string{"m-0", "m-1"}},
	} {
		at := now.Add(step.after)
		cluster.Note(step.name, at)
		if diff := cmp.Diff(step.want, cluster.Lost(at)); diff != "" {
			t.Errorf("step %d: lost (-want +got):\n%s", i, diff)
		}
	}
	if lost := (*witness.Cluster)(nil).Lost(now); lost != nil || len(cluster.Empty) != 2 || len(cluster.With(nil).Empty) != 0 {
		t.Errorf("lost %v, empty %v", lost, cluster.Empty)
	}
}
