// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive/outbox"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// A backup has the runs that wait for the archive, which are no objects, and a restored store has them still.
func TestTheOutboxOfTheArchiveSurvivesARestore(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "b.db")
	e := startEmbedded(t, data)
	e.put(jobSets+"ns/a", encode(t, runtime.ContentTypeProtobuf, jobSet("a")))
	box, err := outbox.Open(outbox.Config{
		Transport: storagebackend.TransportConfig{ServerList: []string{e.server.Endpoint()}}, Prefix: "/registry/jobset-apiserver",
	})
	if err != nil {
		t.Fatal(err)
	}
	err = box.Put(t.Context(), outbox.Entry{Resource: schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}, Run: &archive.Run{
		ObjectMeta: metav1.ObjectMeta{Name: "run"}, Object: archive.RunObject{UID: "uid", Execution: 1}, State: archive.RunDeleted,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	e.putWitness(witness.Format)
	before := e.outbox()

	m.run("backup", file, "--data-dir="+data).want(t, dir, result{out: "Saved revision 4 to DIR/b.db: N bytes, verified.\n"})
	m.run("verify", file).want(t, dir, result{out: `DIR/b.db is a sound snapshot: N bytes, SHA-256 HASH, revision 4.
Store ` + oldUUID + ` of the cluster cluster, written by version v9.9.9, key at revision 4.
disaggregatedsetrolescalers.disaggregatedset.x-k8s.io: 0 objects
disaggregatedsets.disaggregatedset.x-k8s.io: 0 objects
jobsets.jobset.x-k8s.io: 1 object
leaderworkersets.leaderworkerset.x-k8s.io: 0 objects
podreadinessgroups.batch.jobset-apiserver.io: 0 objects
sequentialjobs.batch.jobset-apiserver.io: 0 objects
This version (VERSION) can read all objects.
`})

	restored := filepath.Join(dir, "restored")
	if r := m.run("restore", file, "--data-dir="+restored); r.code != 0 {
		t.Fatalf("restoring: %+v", r)
	}
	e.stop()
	if diff := cmp.Diff(before, startEmbedded(t, restored).outbox()); diff != "" {
		t.Errorf("the outbox (-before +after):\n%s", diff)
	}
}

// outbox returns the keys and values of the outbox.
func (e *embedded) outbox() map[string]string {
	e.t.Helper()
	response, err := e.client.Get(e.t.Context(), keyPrefix+"archive-outbox/", clientv3.WithPrefix())
	if err != nil {
		e.t.Fatal(err)
	}
	found := map[string]string{}
	for _, kv := range response.Kvs {
		found[string(kv.Key)] = string(kv.Value)
	}
	if len(found) != 1 {
		e.t.Errorf("the outbox has %d entries, want 1", len(found))
	}
	return found
}
