// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
)

const testPrefix = "/registry/test"

var (
	lwsResource = schema.GroupResource{Group: "leaderworkerset.x-k8s.io", Resource: "leaderworkersets"}
	jobSets     = schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}
	imageChange = strings.NewReplacer("example.com/main:1", "example.com/main:2", `"generation": 3`, `"generation": 4`)
)

// lws is a set as a custom resource definition serves it.
func lws(name, uid, version string) string {
	return fmt.Sprintf(`{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": {
			"namespace": "ns", "name": %q, "uid": %q, "resourceVersion": %q, "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
			"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/keep"],
			"deletionTimestamp": "2026-01-03T03:04:05Z", "deletionGracePeriodSeconds": 0,
			"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u", "controller": true}],
			"managedFields": [{
				"manager": "kubectl", "operation": "Apply", "apiVersion": "leaderworkerset.x-k8s.io/v1", "time": "2026-01-02T03:04:05Z",
				"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}
			}]
		},
		"spec": {
			"replicas": 2, "startupPolicy": "LeaderCreated", "networkConfig": {"subdomainPolicy": "Shared"},
			"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}},
			"leaderWorkerTemplate": {
				"size": 2, "restartPolicy": "RecreateGroupOnPodRestart",
				"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "example.com/main:1", "resources": {}}]}}
			}
		},
		"status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "observedGeneration": 3, "hpaPodSelector": "x=y"}
	}`, name, uid, version)
}

// list is a file with objects.
func list(objects ...string) Source {
	return FromFile(strings.NewReader(`{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(objects, ",") + `], "metadata": {"resourceVersion": ""}}`))
}

// fixture is a store on a real etcd.
type fixture struct {
	testing.TB
	client *clientv3.Client
	store  *Store
	kinds  *Kinds
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	client := etcdtest.Start(t)
	return &fixture{TB: t, client: client, store: &Store{KV: client, Prefix: testPrefix}, kinds: newKinds(t)}
}

func newKinds(t testing.TB) *Kinds {
	t.Helper()
	kinds, err := NewKinds("")
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// outcome is what an import did.
type outcome struct {
	lines  []string
	counts map[Verdict]int
	failed int
	err    error
}

// run imports sets.
func (f *fixture) run(source Source, change ...func(*Import)) outcome {
	f.Helper()
	out := outcome{}
	i := &Import{Kinds: f.kinds, Store: f.store, Report: func(name string, cause error, _ bool) { out.lines = append(out.lines, name+": "+cause.Error()) }}
	for _, c := range change {
		c(i)
	}
	if out.err = i.Read(f.Context(), source); out.err != nil {
		return out
	}
	var counts Counts
	counts, out.failed, out.err = i.Write(f.Context(), []schema.GroupResource{lwsResource})
	out.counts = counts[lwsResource]
	return out
}

// dump returns all keys with their revisions and values.
func (f *fixture) dump() map[string]string {
	f.Helper()
	response, err := f.client.Get(f.Context(), testPrefix, clientv3.WithPrefix())
	if err != nil {
		f.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range response.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

const keyOfA = testPrefix + "/leaderworkerset.x-k8s.io/leaderworkersets/ns/a"

// rewrite stores an object as the server does.
func (f *fixture) rewrite(text string) {
	f.Helper()
	o, err := f.kinds.decode(f.Context(), []byte(text), false)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.client.Put(f.Context(), keyOfA, string(o.data)); err != nil {
		f.Fatal(err)
	}
}

// stored returns an object of the store as clients see it.
func (f *fixture) stored(key string) map[string]any {
	f.Helper()
	obj, err := runtime.Decode(f.kinds.codec, []byte(f.dump()[key]))
	if err != nil {
		f.Fatal(err)
	}
	text, err := runtime.Encode(f.kinds.text, obj)
	if err != nil {
		f.Fatal(err)
	}
	return parsed(f, string(text))
}

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
