// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	keyPrefix = "/registry/jobset-apiserver/"
	jobSets   = keyPrefix + "jobset.x-k8s.io/jobsets/"
	sequences = keyPrefix + "batch.jobset-apiserver.io/sequentialjobs/"
)

// embedded is a store as a server has it.
type embedded struct {
	t      *testing.T
	dir    string
	server *etcd.Server
	client *clientv3.Client
}

func startEmbedded(t *testing.T, dir string) *embedded {
	t.Helper()
	server := etcdtest.Run(t, dir)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	e := &embedded{t, dir, server, client}
	t.Cleanup(e.stop)
	return e
}

func (e *embedded) stop() {
	if e.server != nil {
		_ = e.client.Close()
		e.server.Close()
		e.server = nil
	}
}

func (e *embedded) put(key string, value []byte) int64 {
	e.t.Helper()
	response, err := e.client.Put(e.t.Context(), key, string(value))
	if err != nil {
		e.t.Fatal(err)
	}
	return response.Header.Revision
}

func (e *embedded) putWitness(format int) int64 {
	key := witness.Key{UUID: oldUUID, ClusterUID: "cluster", Format: format, Version: "v9.9.9"}
	return e.put(keyPrefix+witness.KeyName, key.Encode())
}

// encode returns an object as it is stored in a media type.
func encode(t *testing.T, media string, obj runtime.Object) []byte {
	t.Helper()
	_, codecs := apiserver.NewScheme()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	if !ok {
		t.Fatalf("no serializer for %s", media)
	}
	data, err := runtime.Encode(codecs.CodecForVersions(info.Serializer, nil, apigroups.All().StorageVersions(), nil), obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func jobSet(name string) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}}
}

func sequence(name string) *batchv1alpha1.SequentialJob {
	return &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}}
}

// changing is what differs between runs of a test.
var changing = regexp.MustCompile(`[0-9]+ bytes|SHA-256 [0-9a-f]{64}|\(v[^)]*\)|old-[0-9TZ]+`)

func stable(output, dir string) string {
	return changing.ReplaceAllStringFunc(strings.ReplaceAll(output, dir, "DIR"), func(s string) string {
		switch {
		case strings.HasPrefix(s, "SHA"):
			return "SHA-256 HASH"
		case strings.HasPrefix(s, "("):
			return "(VERSION)"
		case strings.HasPrefix(s, "old-"):
			return "old-TIME"
		}
		return "N bytes"
	})
}

func (r result) want(t *testing.T, dir string, want result) {
	t.Helper()
	r.out, r.message = stable(r.out, dir), stable(r.message, dir)
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBackupVerifyRestore(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "b.db")
	e := startEmbedded(t, data)
	e.put(jobSets+"ns/a", encode(t, runtime.ContentTypeProtobuf, jobSet("a")))
	e.put(jobSets+"ns/b", encode(t, runtime.ContentTypeJSON, jobSet("b")))
	e.put(sequences+"ns/s", encode(t, runtime.ContentTypeProtobuf, sequence("s")))
	key := e.putWitness(witness.Format)

	m.run("backup", file, "--data-dir="+data).want(t, dir, result{out: "Saved revision 5 to DIR/b.db: N bytes, verified.\n"})
	m.run("verify", file).want(t, dir, result{out: `DIR/b.db is a sound snapshot: N bytes, SHA-256 HASH, revision 5.
Store ` + oldUUID + ` of the cluster cluster, written by version v9.9.9, key at revision 5.
disaggregatedsetrolescalers.disaggregatedset.x-k8s.io: 0 objects
disaggregatedsets.disaggregatedset.x-k8s.io: 0 objects
jobsets.jobset.x-k8s.io: 2 objects, 1 stored in an older form, which "store migrate" rewrites
leaderworkersets.leaderworkerset.x-k8s.io: 0 objects
podreadinessgroups.batch.jobset-apiserver.io: 0 objects
sequentialjobs.batch.jobset-apiserver.io: 1 object
This version (VERSION) can read all objects.
`})
	m.run("restore", file, "--data-dir="+data).want(t, dir, result{code: 1, message: "--data-dir: DIR/data is in use by another process: stop the server first"})
	e.stop()
	m.run("restore", file, "--data-dir="+data).want(t, dir, result{code: 1,
		message: "--data-dir: DIR/data/etcd already has data: set --move-existing to move it away, or use another directory"})
	m.run("restore", file, "--data-dir="+data, "--move-existing").want(t, dir, result{out: `Restored DIR/b.db into DIR/data. The store continues after revision 1000000005.
The data that was there is in DIR/data/etcd.old-TIME now.
The server will refuse the store, because it is older than it was. Start the server, and then follow "jobset-apiserver store status".
`})

	if moved, err := filepath.Glob(filepath.Join(data, "etcd.old-*", "member")); err != nil || len(moved) != 1 {
		t.Errorf("the data was moved to %v, %v", moved, err)
	}

	// The key is as old as it was, so a server recognizes what happened.
	e = startEmbedded(t, data)
	response, err := e.client.Get(t.Context(), keyPrefix+witness.KeyName)
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("%v, %v", response, err)
	}
	found, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil || response.Kvs[0].ModRevision != key {
		t.Errorf("the key has revision %d, want %d: %v", response.Kvs[0].ModRevision, key, err)
	}
	record := &witness.Record{UUID: oldUUID, Floor: key + 1}
	step, reason := witness.Decide(&witness.Found{Key: found, ModRevision: response.Kvs[0].ModRevision}, record, "cluster")
	if step != witness.StepRefuse || reason != witness.ReasonRolledBack {
		t.Errorf("%s %s", step, reason)
	}
}

func TestVerifyFindsWhatCannotBeServed(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data := filepath.Join(dir, "data")
	e := startEmbedded(t, data)
	e.put(jobSets+"ns/a", encode(t, runtime.ContentTypeProtobuf, jobSet("a")))
	e.put(jobSets+"ns/garbage", []byte("k8s\x00garbage\n\xff"))
	e.put(jobSets+"ns/another", []byte(`{"apiVersion":"jobset.x-k8s.io/v9","kind":"JobSet"}`))
	e.put(jobSets+"ns/secret", []byte("k8s:enc:secretbox:v1:one:xxx"))
	e.put(keyPrefix+"jobset.x-k8s.io/others/ns/a", []byte("x"))
	e.put("/registry/pods/ns/a", []byte("of another server"))
	file := filepath.Join(dir, "b.db")
	m.run("backup", file, "--data-dir="+data).want(t, dir, result{out: "Saved revision 7 to DIR/b.db: N bytes, verified.\n"})
	r := m.run("verify", file)
	for _, want := range []string{
		"It has no key of the witness below /registry/jobset-apiserver: ",
		"jobsets.jobset.x-k8s.io: 4 objects, 2 cannot be read, 1 encrypted\n",
		"cannot be read: jobsets.jobset.x-k8s.io ns/garbage: ",
		`cannot be read: jobsets.jobset.x-k8s.io ns/another: no kind \"JobSet\" is registered for version \"jobset.x-k8s.io/v9\"`,
		"cannot be read: others.jobset.x-k8s.io ns/a: this version does not know the resource\n",
		") cannot read 3 objects.\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if r.code != 1 || strings.Count(r.out, "\n") != len(apigroups.All().Stored())+6 {
		t.Errorf("exit code %d:\n%s", r.code, r.out)
	}

	e.putWitness(witness.Format + 1)
	file = filepath.Join(dir, "newer.db")
	m.run("backup", file, "--data-dir="+data)
	newer := "version v9.9.9 has written the store in format 2, but this version reads formats up to 1: use version v9.9.9 or newer"
	if r := m.run("verify", file); r.code != 1 || !strings.Contains(stable(r.out, dir), "This version (VERSION) must not serve it: "+newer+".\n") {
		t.Errorf("newer format: exit code %d:\n%s", r.code, r.out)
	}
	m.run("restore", file, "--data-dir="+filepath.Join(dir, "new")).want(t, dir, result{code: 1, message: newer})
}

func TestUnreadableObjectsAreBounded(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "b.db")
	e := startEmbedded(t, data)
	for i := range 3 * maxProblems {
		e.put(jobSets+"ns/"+strings.Repeat("x", i+1), []byte(strings.Repeat("\x1b[2J", 10000)))
	}
	m.run("backup", file, "--data-dir="+data)
	r := m.run("verify", file)
	if r.code != 1 || !strings.Contains(r.out, "cannot be read: 40 more\n") || len(r.out) > 20_000 || strings.Contains(r.out, "\x1b") {
		t.Errorf("exit code %d:\n%s", r.code, r.out)
	}
}

func TestWrongUseOfBackups(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	file, empty := filepath.Join(dir, "b.db"), filepath.Join(dir, "empty.db")
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := startEmbedded(t, data)
	e.put("/registry/pods/ns/a", []byte("of another server"))
	m.run("backup", filepath.Join(dir, "other.db"), "--data-dir="+data)
	for want, args := range map[string][]string{
		"either one FILE, - or s3://BUCKET/PREFIX/, or --backup-dir must be":            {"backup", "--data-dir=" + data},
		"either one FILE, - or s3://BUCKET/PREFIX/, or --backup-dir must be given: the": {"backup", file, "--backup-dir=" + dir, "--data-dir=" + data},
		"--backup-keep: must be at least 1, not 0":                                      {"backup", "--backup-dir=" + dir, "--backup-keep=0"},
		"--data-dir: either --data-dir or --etcd-servers must be set":                   {"backup", file},
		"--data-dir: no server runs in DIR/none: ":                                      {"backup", file, "--data-dir=" + filepath.Join(dir, "none")},
		`--etcd-servers: "none" is not an address`:                                      {"backup", file, "--etcd-servers=none"},
		"--etcd-certfile: must be set together with --etcd-keyfile":                     {"backup", file, "--etcd-servers=https://127.0.0.1:1", "--etcd-certfile=x"},
		"backing up the store: DIR/empty.db: file already exists":                       {"backup", empty, "--data-dir=" + data},
		"backing up the store: open DIR/none/b.db.":                                     {"backup", filepath.Join(dir, "none", "b.db"), "--data-dir=" + data},
		"one FILE must be given, not 0":                                                 {"verify"},
		"DIR/empty.db is empty":                                                         {"verify", empty},
		"open DIR/b.db: no such file":                                                   {"verify", file},
		"--encryption-provider-config: ":                                                {"verify", file, "--encryption-provider-config=none"},
		"one FILE must be given, not 2":                                                 {"restore", file, file, "--data-dir=" + data},
		"--data-dir: must be set":                                                       {"restore", file},
		"DIR/other.db has nothing below /registry/jobset-apiserver: it is not a":        {"restore", filepath.Join(dir, "other.db"), "--data-dir=" + filepath.Join(dir, "new")},
	} {
		r := m.run(args...)
		if got := stable(r.message, dir); r.code != 1 || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%v: exit code %d, %q, want %q", args, r.code, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a refused restore has made a directory")
	}
}

// TestBackupOfAStoppedServer restores what a server has left that cannot run any more.
func TestBackupOfAStoppedServer(t *testing.T) {
	c, e, files := newCluster(t), startEmbedded(t, t.TempDir()), t.TempDir()
	e.putWitness(1)
	e.put(jobSets+"ns/a", []byte("value"))
	file := filepath.Join(files, "backup.db")
	args := []string{"backup", file, "--data-dir=" + e.dir, "--stopped"}
	if got := c.run(args...); got.code == 0 || !strings.Contains(got.message, ": stop the server first") {
		t.Errorf("while the server runs: %+v", got)
	}
	e.stop()
	if got := c.run(args...); got.code != 0 || !strings.HasSuffix(got.out, "bytes, verified.\n") {
		t.Fatalf("%+v", got)
	}
	if got := c.run(args...); got.code == 0 || !strings.Contains(got.message, "file exists") {
		t.Errorf("a second time: %+v", got)
	}
	for _, args := range [][]string{{"-", "--data-dir=" + e.dir}, {file + "2"}} {
		if got := c.run(append([]string{"backup", "--stopped"}, args...)...); got.code == 0 || !strings.Contains(got.message, "--stopped: needs the name of a FILE and --data-dir") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	restored := filepath.Join(files, "data")
	if got := c.run("restore", file, "--data-dir="+restored); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	again := startEmbedded(t, restored)
	response, err := again.client.Get(t.Context(), jobSets+"ns/a")
	if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "value" {
		t.Errorf("read %v, %v", response, err)
	}
}
