// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// storedForm is how an object is stored, and when it was written.
type storedForm struct {
	Protobuf    bool
	ModRevision int64
}

// storedForms returns the forms of all sets in the embedded etcd of a server that runs.
func storedForms(t *testing.T, data string) map[string]storedForm {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(data, "client.sock")}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	response, err := client.Get(t.Context(), "/registry/jobset-apiserver/jobset.x-k8s.io/jobsets/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]storedForm{}
	for _, kv := range response.Kvs {
		forms[filepath.Base(string(kv.Key))] = storedForm{strings.HasPrefix(string(kv.Value), "k8s\x00"), kv.ModRevision}
	}
	return forms
}

// served returns a set as it is served, without its version.
func (e *env) served(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := e.dynamic.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj.SetResourceVersion("")
	return obj
}

// TestMigrate stores sets in JSON, and then migrates them to protobuf behind kube-apiserver.
func TestMigrate(t *testing.T) {
	tier.OnRequest(t, "starts a server of an older release")
	dir := framework.ShortDir(t)
	data := filepath.Join(dir, "data")
	server := plane.StartServer(t, append(framework.Embedded(data), "--storage-media-type=application/json")...)
	direct := newEnv(t, server, server.Config(t))
	for _, name := range []string{"old", "running"} {
		direct.create(t, jobSet(name))
	}
	running := direct.annotate(t, "running", "x")
	running.Status = jobsetv1alpha2.JobSetStatus{Restarts: 3, ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 2}}}
	if _, err := direct.typed.UpdateStatus(t.Context(), running, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.Stop(t)

	server = plane.StartServer(t, framework.Embedded(data)...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	e.create(t, jobSet("new"))
	admin, err := plane.Kubeconfig("store-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e.typed, e.dynamic = clientset(t, plane.Config).JobSets(direct.namespace), plane.Dynamic.Resource(jobsets).Namespace(direct.namespace)
	before := map[string]*unstructured.Unstructured{"old": e.served(t, "old"), "running": e.served(t, "running")}
	forms := storedForms(t, data)
	if forms["old"].Protobuf || forms["running"].Protobuf || !forms["new"].Protobuf {
		t.Fatalf("before the migration: %v", forms)
	}
	file := filepath.Join(dir, "b.db")
	storeTool(t, 0, "verified.", "backup", file, "--data-dir="+data)
	storeTool(t, 0, `jobsets.jobset.x-k8s.io: 3 objects, 2 stored in an older form, which "store migrate" rewrites`, "verify", file)

	expectStore(t, admin, []string{"migrate", "--dry-run=server"}, 0, "jobsets.jobset.x-k8s.io: 3 objects, 0 written (server dry run)\n")
	if diff := cmp.Diff(forms, storedForms(t, data)); diff != "" {
		t.Errorf("after a dry run (-before +after):\n%s", diff)
	}
	expectStore(t, admin, []string{"migrate"}, 0, "jobsets.jobset.x-k8s.io: 3 objects, 2 written\n", "sequentialjobs.batch.jobset-apiserver.io: 0 objects, 0 written\n")
	migrated := storedForms(t, data)
	if migrated["new"] != forms["new"] {
		t.Errorf("a set in the present form was written: %v, %v", migrated["new"], forms["new"])
	}
	for name, want := range before {
		if !migrated[name].Protobuf || migrated[name].ModRevision <= forms[name].ModRevision {
			t.Errorf("%s is stored as %v, was %v", name, migrated[name], forms[name])
		}
		if diff := cmp.Diff(want, e.served(t, name)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
	expectStore(t, admin, []string{"migrate"}, 0, "jobsets.jobset.x-k8s.io: 3 objects, 0 written\n")
	if again := storedForms(t, data); !maps.Equal(again, migrated) {
		t.Errorf("the second time, %v becomes %v", migrated, again)
	}
	file = filepath.Join(dir, "after.db")
	storeTool(t, 0, "verified.", "backup", file, "--data-dir="+data)
	storeTool(t, 0, "jobsets.jobset.x-k8s.io: 3 objects\n", "verify", file)
}
