// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/objectstorage"
)

// withSet starts a store with a set and a witness.
func withSet(t *testing.T, dir string) *embedded {
	t.Helper()
	e := startEmbedded(t, filepath.Join(dir, "data"))
	e.put(jobSets+"ns/a", encode(t, runtime.ContentTypeProtobuf, jobSet("a")))
	e.putWitness(witness.Format)
	return e
}

func TestBackupToStandardOutput(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	e := withSet(t, dir)
	r := m.run("backup", "-", "--data-dir="+e.dir)
	if got := stable(r.errOut, dir); r.code != 0 || got != "Wrote revision 3 or later to the standard output: N bytes, with their hash.\n" {
		t.Fatalf("exit code %d, %q, %q", r.code, got, r.message)
	}
	snapshot := r.out

	m.in = bytes.NewBufferString(snapshot)
	if r := m.run("verify", "-"); r.code != 0 || !strings.HasPrefix(stable(r.out, dir), "the standard input is a sound snapshot: N bytes, ") ||
		!strings.Contains(r.out, "jobsets.jobset.x-k8s.io: 1 object\n") {
		t.Errorf("exit code %d, %q\n%s", r.code, r.message, r.out)
	}
	m.in = bytes.NewBufferString(snapshot)
	m.run("restore", "-", "--data-dir="+e.dir).want(t, dir, result{
		code: 1, message: "--data-dir: DIR/data is in use by another process: stop the server first",
	})
	restored := filepath.Join(dir, "restored")
	m.in = bytes.NewBufferString(snapshot)
	m.run("restore", "-", "--data-dir="+restored).want(t, dir, result{out: "Restored the standard input into DIR/restored. The store continues " +
		"after revision 1000000003.\n" + refused})
	m.in = bytes.NewBufferString(snapshot)
	m.run("restore", "-", "--data-dir="+restored).want(t, dir, result{code: 1, message: "--data-dir: DIR/restored/etcd already has data: set " +
		"--move-existing to move it away, or use another directory"})
	m.in = bytes.NewBufferString(snapshot[:len(snapshot)-100])
	r = m.run("restore", "-", "--data-dir="+filepath.Join(dir, "cut"))
	if r.code != 1 || !strings.HasPrefix(r.message, "the standard input does not end with a hash: it was cut off") {
		t.Errorf("cut off: exit code %d, %q", r.code, r.message)
	}
	m.in = bytes.NewBufferString(strings.Replace(snapshot, "uid", "UID", 1))
	r = m.run("verify", "-")
	if r.code != 1 || !strings.HasPrefix(r.message, "the standard input is damaged: its content has the hash ") {
		t.Errorf("damaged: exit code %d, %q", r.code, r.message)
	}
	for _, of := range []string{"restored", "cut"} {
		if left, err := filepath.Glob(filepath.Join(dir, of, "jobset-apiserver-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

const refused = "The server will refuse the store, because it is older than it was. Start the server, and then follow \"jobset-apiserver " +
	"store status\".\n"

// objectName is what a backup in a bucket is called.
var objectName = regexp.MustCompile(`jobset-apiserver-[0-9]{8}T[0-9]{6}Z-`)

func TestBackupToBucket(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	e := withSet(t, dir)
	credentials, temporary := filepath.Join(dir, "s3"), filepath.Join(dir, "tmp")
	for path, content := range map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"} {
		if err := os.MkdirAll(credentials, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(credentials, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	s3 := []string{"--s3-endpoint=" + objectstorage.Start(t), "--s3-credentials-dir=" + credentials}
	run := func(args ...string) result {
		r := m.run(append(args, s3...)...)
		r.out = objectName.ReplaceAllString(r.out, "TIME-")
		return r
	}
	for revision := range 3 {
		r := run("backup", "s3://backups/jobset/", "--data-dir="+e.dir, "--backup-keep=2")
		want := "Saved revision " + strconv.Itoa(3+revision) + " to s3://backups/jobset/TIME-" + strconv.Itoa(3+revision) + ".db: N bytes, verified.\n"
		r.want(t, dir, result{out: want})
		e.put(jobSets+"ns/a", encode(t, runtime.ContentTypeProtobuf, jobSet("a")))
	}
	if r := run("verify", "s3://backups/jobset/"); r.code != 0 ||
		!strings.HasPrefix(stable(r.out, dir), "s3://backups/jobset/TIME-5.db is a sound snapshot: N bytes, SHA-256 HASH, revision 5.\n") {
		t.Errorf("exit code %d, %q\n%s", r.code, r.message, r.out)
	}
	run("restore", "s3://backups/jobset/", "--data-dir="+filepath.Join(dir, "restored")).want(t, dir, result{out: "Restored " +
		"s3://backups/jobset/TIME-5.db into DIR/restored. The store continues after revision 1000000005.\n" + refused})
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}

	for want, args := range map[string][]string{
		`"s3://backups/jobset" must end with a slash: `:       {"backup", "s3://backups/jobset", "--data-dir=" + e.dir},
		"the flags that begin with --s3- need the address ":   {"backup", filepath.Join(dir, "b.db"), "--data-dir=" + e.dir},
		"the flags that begin with --s3- need the address of": {"verify", filepath.Join(dir, "b.db")},
		"--backup-keep: must be at least 0, not -1":           {"backup", "s3://backups/", "--backup-keep=-1", "--data-dir=" + e.dir},
		"s3://backups/others/ has no backup":                  {"restore", "s3://backups/others/", "--data-dir=" + filepath.Join(dir, "new")},
		"downloading s3://backups/none.db: there is no such":  {"restore", "s3://backups/none.db", "--data-dir=" + filepath.Join(dir, "new")},
		`uploading to s3://missing/`:                          {"backup", "s3://missing/", "--data-dir=" + e.dir},
		`listing s3://missing/: the bucket "missing" does`:    {"verify", "s3://missing/"},
	} {
		r := run(args...)
		if got := stable(r.message, dir); r.code != 1 || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%v: exit code %d, %q, want %q", args, r.code, got, want)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	r := run("backup", "s3://backups/jobset/", "--data-dir="+e.dir)
	if want := "stat DIR/none: no such file or directory: set TMPDIR to a directory with enough space"; stable(r.message, dir) != want {
		t.Errorf("no directory for temporary files: %+v", r)
	}
}

// TestBackupOnSmallDisk needs root to mount a small disk.
func TestBackupOnSmallDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	dir, m := etcdtest.Dir(t), newCluster(t)
	e := withSet(t, dir)
	for i := range 4 {
		e.put(keyPrefix+"filler/"+strconv.Itoa(i), bytes.Repeat([]byte("x"), 1<<20))
	}
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	r := m.run("backup", "-", "--data-dir="+e.dir)
	t.Setenv("TMPDIR", small)
	m.in = bytes.NewBufferString(r.out)
	if r := m.run("verify", "-"); r.code != 1 || !strings.HasPrefix(r.message, "copying the standard input: ") ||
		!strings.HasSuffix(r.message, "no space left on device: set TMPDIR to a directory with enough space") {
		t.Errorf("verify: exit code %d, %q", r.code, r.message)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	r = m.run("backup", "s3://backups/", "--s3-endpoint=http://127.0.0.1:1", "--data-dir="+e.dir)
	if r.code != 1 || !strings.HasSuffix(r.message, " are needed: set TMPDIR to a directory with enough space") {
		t.Errorf("backup: exit code %d, %q", r.code, r.message)
	}
	m.in = bytes.NewBufferString(m.run("backup", "-", "--data-dir="+e.dir).out)
	r = m.run("restore", "-", "--data-dir="+filepath.Join(small, "data"))
	if r.code != 1 || !strings.HasSuffix(r.message, "no space left on device: it needs space for the backup and for the data that is made of it") {
		t.Errorf("restore: exit code %d, %q", r.code, r.message)
	}
	if left, err := os.ReadDir(small); err != nil || len(left) != 1 || left[0].Name() != "data" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestBackupDirectory(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data, backups := filepath.Join(dir, "data"), filepath.Join(dir, "backups")
	e := startEmbedded(t, data)
	for range 3 {
		e.putWitness(witness.Format)
		if r := m.run("backup", "--data-dir="+data, "--backup-dir="+backups, "--backup-keep=2"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	entries, err := filepath.Glob(filepath.Join(backups, "jobset-apiserver-*-*.db"))
	if err != nil || len(entries) != 2 || !strings.HasSuffix(entries[1], "-4.db") {
		t.Errorf("%v, %v", entries, err)
	}
	if r := m.run("verify", backups+"/"); !strings.HasPrefix(r.out, entries[1]+" is a sound snapshot: ") {
		t.Errorf("the newest one is %+v, want %s", r, entries[1])
	}
	if r := m.run("verify", data+"/"); r.message != data+"/ has no backup" {
		t.Errorf("%+v", r)
	}
}
