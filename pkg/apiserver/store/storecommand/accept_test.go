// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestAccept(t *testing.T) {
	lost := witness.LostOwners{NewUUID: newUUID, Revision: 7, Owners: []types.UID{lostUID}}
	safe, unknown, newer := refusal(0), refusal(0), refusal(0)
	safe.JobsAtStake, safe.Jobs = 0, nil
	unknown.JobsAtStake, unknown.Jobs = -1, nil
	claims := refusal(0)
	claims.JobsAtStake, claims.ClaimsAtStake, claims.Jobs = 0, 4, nil
	sets := refusal(0)
	sets.JobsAtStake, sets.Jobs, sets.AtStake = 0, nil, []witness.Loss{{Resource: "statefulsets.apps", Kind: "StatefulSet", Count: 1}}
	newer.Reason = witness.ReasonNewerFormat
	refused := func(r *witness.Refusal) witness.Record { return witness.Record{UUID: oldUUID, Floor: 9, Refusal: r} }
	deleting := job("b", jobSetOwner(lostUID))
	deleting.DeletionTimestamp = &metav1.Time{Time: testNow}
	const release = ` To keep them, run "store release-orphans" first. To let them go, add --abandon-jobs`
	for name, tc := range map[string]struct {
		cluster *mainCluster
		flags   []string
		want    result
		// accepted is what the record has afterwards.
		accepted *witness.Acceptance
	}{
		"nothing is at stake": {newCluster(t).with(refused(safe)), nil,
			result{out: "store " + newUUID + " at revision 7 accepted\n"}, &witness.Acceptance{NewUUID: newUUID, Revision: 7}},
		"Jobs are abandoned": {newCluster(t, job("a", jobSetOwner(lostUID))).with(refused(refusal(0))).losing(lost), []string{"--abandon-jobs"},
			result{out: "store " + newUUID + " at revision 7 accepted\n"}, &witness.Acceptance{NewUUID: newUUID, Revision: 7, AbandonJobs: true}},
		"Jobs are at stake": {newCluster(t, job("a", jobSetOwner(lostUID)), job("b", jobSetOwner("other")), job("c", jobSetOwner(lostUID))).with(refused(refusal(0))).losing(lost), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 2 Jobs (ns/a, ns/c)." + release}, nil},
		"Jobs were released, or are gone anyway": {newCluster(t, job("a"), deleting).with(refused(refusal(0))).losing(lost), nil,
			result{out: "store " + newUUID + " at revision 7 accepted\n"}, &witness.Acceptance{NewUUID: newUUID, Revision: 7}},
		"Jobs are at stake, and no list says whose": {newCluster(t).with(refused(refusal(0))), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 2 Jobs (ns/a, ns/b)." + release}, nil},
		"Jobs are at stake, and the list is of another refusal": {newCluster(t).with(refused(refusal(0))).losing(witness.LostOwners{NewUUID: oldUUID}), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 2 Jobs (ns/a, ns/b)." + release}, nil},
		"Jobs are at stake, and the list is not complete": {newCluster(t).with(refused(refusal(0))).losing(witness.LostOwners{NewUUID: newUUID, Revision: 7, More: true}), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 2 Jobs (ns/a, ns/b)." + release}, nil},
		"claims are at stake": {newCluster(t, object("v1", "PersistentVolumeClaim", "data", jobSetOwner(lostUID))).with(refused(claims)).losing(lost), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 1 PersistentVolumeClaim (ns/data)." + release}, nil},
		"StatefulSets are at stake": {newCluster(t, object("apps/v1", "StatefulSet", "serve", jobSetOwner(lostUID))).with(refused(sets)).losing(lost), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete 1 StatefulSet (ns/serve)." + release}, nil},
		"nobody knows what is at stake": {newCluster(t).with(refused(unknown)), nil,
			result{code: 1, message: "--abandon-jobs: the garbage collector will delete an unknown number of objects." + release}, nil},
		"only a try on the client": {newCluster(t).with(refused(safe)), []string{"--dry-run=client"},
			result{out: "store " + newUUID + " at revision 7 accepted (dry run)\n"}, nil},
		"the first store": {newCluster(t).with(refused(safe)), nil,
			result{out: "store " + newUUID + " at revision 7 accepted\n"}, &witness.Acceptance{NewUUID: newUUID, Revision: 7}},
		"there is no witness": {newCluster(t), nil,
			result{code: 1, message: "no server refuses a store: ConfigMap kube-system/jobset-apiserver-store does not exist"}, nil},
		"nothing is refused": {newCluster(t).with(witness.Record{UUID: oldUUID, Floor: 9}), nil,
			result{code: 1, message: "no server refuses a store; the store of this cluster is " + oldUUID}, nil},
		"it was accepted and adopted before": {newCluster(t).with(witness.Record{UUID: newUUID, Floor: 9, Restored: &witness.Restored{}}), nil,
			result{out: "store " + newUUID + " at revision 7 accepted\n"}, nil},
		"a newer version wrote the store": {newCluster(t).with(refused(newer)), []string{"--abandon-jobs"},
			result{code: 1, message: "a newer version of jobset-apiserver has written this store: run that version; the store cannot be accepted for this one"}, nil},
		"another store": {newCluster(t).with(refused(safe)), []string{"--uuid=" + oldUUID},
			result{code: 1, message: "--uuid: must be " + newUUID + ", which jobset-apiserver-0 refuses, not " + oldUUID + `: look at "store status" again`}, nil},
		"another state": {newCluster(t).with(refused(safe)), []string{"--revision=6"},
			result{code: 1, message: `--revision: must be 7, which jobset-apiserver-0 refuses, not 6: look at "store status" again`}, nil},
		"no UUID": {newCluster(t).with(refused(safe)), []string{"--uuid="},
			result{code: 1, message: `--uuid: must be that of the store that is refused; "store status" shows it`}, nil},
		"no number": {newCluster(t).with(refused(safe)), []string{"--revision=x"},
			result{code: 1, message: `invalid argument "x" for "--revision" flag: strconv.ParseInt: parsing "x": invalid syntax; see store accept --help`}, nil},
		"another way to try": {newCluster(t).with(refused(safe)), []string{"--dry-run=yes"},
			result{code: 1, message: `--dry-run: must be none, server or client, not "yes"`}, nil},
		"arguments": {newCluster(t).with(refused(safe)), []string{"now"},
			result{code: 1, message: `argument "now" is not known: store accept takes flags only`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cluster.t = t
			got := tc.cluster.run(append([]string{"accept", "--uuid=" + newUUID, "--revision=7"}, tc.flags...)...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if name == "there is no witness" {
				return
			}
			record := tc.cluster.record()
			if diff := cmp.Diff(tc.accepted, record.Accepted); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
		})
	}
	if got := newCluster(t).with(refused(safe)).run("accept", "--uuid="+newUUID); got.message != `--revision: must be that of the store that is refused; "store status" shows it` {
		t.Errorf("%+v", got)
	}
}

// TestAcceptWhileServerWrites: the server confirms its refusal, and in the end it is about another state.
func TestAcceptWhileServerWrites(t *testing.T) {
	safe := refusal(0)
	safe.JobsAtStake, safe.Jobs = 0, nil
	for name, tc := range map[string]struct {
		conflicts int
		revision  int64
		message   string
	}{
		"the same refusal":    {2, 7, ""},
		"another state":       {2, 8, `--revision: must be 8, which jobset-apiserver-0 refuses, not 7: look at "store status" again`},
		"more than is normal": {5, 7, "Operation cannot be fulfilled on configmaps \"jobset-apiserver-store\": <nil>"},
	} {
		m := newCluster(t).with(witness.Record{UUID: oldUUID, Floor: 9, Refusal: safe})
		m.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if tc.conflicts == 0 {
				return false, nil, nil
			}
			tc.conflicts--
			changed := *safe
			changed.Revision = tc.revision
			cm, err := m.kube.Tracker().Get(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, witness.Namespace, witness.Name)
			if err != nil {
				t.Fatal(err)
			}
			next := configMap(t, witness.Record{UUID: oldUUID, Floor: 10, Refusal: &changed}, cm)
			if err := m.kube.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, next, witness.Namespace); err != nil {
				t.Fatal(err)
			}
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, witness.Name, nil)
		})
		got := m.run("accept", "--uuid="+newUUID, "--revision=7")
		if got.message != tc.message {
			t.Errorf("%s: %+v", name, got)
		}
		record := m.record()
		if accepted := record.Accepted != nil; accepted != (tc.message == "") || record.Floor != 10 {
			t.Errorf("%s: accepted: %t, floor %d", name, accepted, record.Floor)
		}
	}
}

func TestServerTriesAcceptances(t *testing.T) {
	safe := refusal(0)
	safe.JobsAtStake, safe.Jobs = 0, nil
	m := newCluster(t).with(witness.Record{UUID: oldUUID, Floor: 9, Refusal: safe})
	if got := m.run("accept", "--uuid="+newUUID, "--revision=7", "--dry-run=server"); got.out != "store "+newUUID+" at revision 7 accepted (server dry run)\n" {
		t.Errorf("%+v", got)
	}
	for _, action := range m.kube.Actions() {
		if update, ok := action.(clienttesting.UpdateActionImpl); ok && !cmp.Equal(update.UpdateOptions.DryRun, []string{"All"}) {
			t.Errorf("options of the request: %+v", update.UpdateOptions)
		}
	}
}
