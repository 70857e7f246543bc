// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

func TestDirectoryKeepsTheNewest(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	d := directory(t, 2)
	for range 4 {
		s.put(t, prefix+"/a", "x")
		if _, err := d.Save(t.Context(), s.source); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"jobset-apiserver-20260102T030408Z-4.db", "jobset-apiserver-20260102T030409Z-5.db", "lock"}
	if diff := cmp.Diff(want, names(t, d.Path)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	// Files of others stay, and so does the newest one after the clock was set back.
	for _, name := range []string{"notes.txt", "jobset-apiserver-20260102T030407Z-3.db.old", "jobset-apiserver-20990102T030407Z-3.db"} {
		if err := os.WriteFile(filepath.Join(d.Path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.Now = func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }
	if _, err := d.Save(t.Context(), s.source); err != nil {
		t.Fatal(err)
	}
	want = []string{"jobset-apiserver-20200101T000000Z-5.db", "jobset-apiserver-20260102T030407Z-3.db.old", "jobset-apiserver-20990102T030407Z-3.db", "lock", "notes.txt"}
	if diff := cmp.Diff(want, names(t, d.Path)); diff != "" {
		t.Errorf("files after the clock was set back (-want +got):\n%s", diff)
	}
}

func TestFailedBackupDeletesNothing(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	d := directory(t, 1)
	if _, err := d.Save(t.Context(), s.source); err != nil {
		t.Fatal(err)
	}
	before := names(t, d.Path)
	s.stop(t)
	s.source.Client.DialTimeout = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if saved, err := d.Save(ctx, s.source); err == nil {
		t.Errorf("a store that does not run was saved to %s", saved.Path)
	}
	if diff := cmp.Diff(before, names(t, d.Path)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFilesAreNotReplaced(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Save(t.Context(), s.source, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("error is %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "precious" {
		t.Errorf("the file has %q, %v", content, err)
	}
}

func TestOneBackupAtATime(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	d := directory(t, 2)
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(d.Path, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	incomplete := filepath.Join(d.Path, "incomplete")
	if err := os.WriteFile(incomplete, []byte("of the other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Save(t.Context(), s.source); !errors.Is(err, backup.ErrRunning) {
		t.Errorf("error is %v", err)
	}
	if err := d.Clean(); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(incomplete); err != nil || string(content) != "of the other" {
		t.Errorf("the other backup has %q, %v", content, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Clean(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"lock"}, names(t, d.Path)); diff != "" {
		t.Errorf("files after cleaning (-want +got):\n%s", diff)
	}
}

// endlessEnv makes this program back up a store without end, until it is killed.
const endlessEnv = "BACKUP_TEST_ENDLESS"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(endlessEnv), " "); len(args) == 2 {
		d := backup.Directory{Path: args[1], Keep: 3, Now: time.Now}
		for {
			if _, err := d.Save(context.Background(), backup.Source{Client: clientv3.Config{Endpoints: args[:1]}, Prefix: prefix}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

func TestKilledBackupLeavesTheOthers(t *testing.T) {
	s := startStore(t, filepath.Join(etcdtest.Dir(t), "data"))
	defer s.Close()
	s.putWitness(t, "u", "v1")
	s.fill(t, 40, 1<<20)
	d := directory(t, 3)
	for range 3 {
		killInTheMiddle(t, s.Endpoint(), d.Path)
		kept, err := d.List()
		if err != nil || len(kept) == 0 {
			t.Fatalf("%v are left, %v", kept, err)
		}
		for _, k := range kept {
			f, err := backup.Open(filepath.Join(d.Path, k.Name))
			if err != nil {
				t.Fatalf("a killed process has left %v", err)
			}
			if found, err := f.Witness(prefix); err != nil || found == nil {
				t.Errorf("%s has no key: %v", k.Name, err)
			}
			f.Close()
		}
		if err := d.Clean(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(d.Path, "incomplete")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the incomplete file is left: %v", err)
		}
	}
}

// killInTheMiddle kills a process that has a backup already and writes another.
func killInTheMiddle(t *testing.T, endpoint, dir string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), endlessEnv+"="+endpoint+" "+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	}()
	for end := time.Now().Add(poll.Bound(t)); time.Now().Before(end); time.Sleep(time.Millisecond) { // a backup is written within a few of them
		saved, _ := filepath.Glob(filepath.Join(dir, "jobset-apiserver-*.db"))
		info, err := os.Stat(filepath.Join(dir, "incomplete"))
		if err == nil && info.Size() > 1<<20 && len(saved) > 0 {
			return
		}
	}
	t.Fatal("no backup was being written")
}
