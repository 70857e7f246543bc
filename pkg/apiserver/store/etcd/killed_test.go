// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// restoreEnv makes this program restore a file into a directory, and kill itself at a point.
const restoreEnv = "ETCD_TEST_RESTORE"

const asideDir = "etcd.aside"

func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 4 << 20 // which are allocated in advance, in memory for some tests
	if args := strings.Split(os.Getenv(restoreEnv), ","); len(args) == 3 {
		_, err := restoreThrough(args[0], args[1], asideDir, func(point string) {
			if point == args[2] {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killedAt restores in a process of its own, which is killed at a point.
func killedAt(t *testing.T, file, dir, point string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), restoreEnv+"="+strings.Join([]string{file, dir, point}, ","))
	err = cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the restore was not killed: %v", err)
	}
}

// valueIn returns what a member in a directory has of the key.
func valueIn(t *testing.T, dir string) string {
	t.Helper()
	s := run(t, Config{DataDir: dir, QuotaBytes: 64 << 20, Ephemeral: true})
	defer s.Close()
	client := connect(t, s)
	defer client.Close()
	response, err := client.Get(t.Context(), "key")
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("%v, %v", response, err)
	}
	return string(response.Kvs[0].Value[:3])
}

// TestKilledRestore kills the restore at each point, with data that it replaces and without. There is all of the old data, nothing, or all
// of the restored data, and the next restore succeeds.
func TestKilledRestore(t *testing.T) {
	root := memoryDir(t)
	first, old := filepath.Join(root, "first"), filepath.Join(root, "old")
	var file string
	for dir, value := range map[string]string{first: "new", old: "old"} {
		s := run(t, Config{DataDir: dir, QuotaBytes: 64 << 20, Ephemeral: true})
		client := connect(t, s)
		put(t, client, "key", value+strings.Repeat("x", 1<<20))
		if value == "new" {
			file = save(t, s)
		}
		client.Close()
		s.Close()
	}
	for _, replaces := range []bool{false, true} {
		prepare := func() string {
			dir := filepath.Join(memoryDir(t), "data")
			if replaces {
				if err := os.CopyFS(filepath.Join(dir, memberDir), os.DirFS(filepath.Join(old, memberDir))); err != nil {
					t.Fatal(err)
				}
			}
			return dir
		}
		var points []string
		if _, err := restoreThrough(file, prepare(), asideDir, func(point string) { points = append(points, point) }); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 10, true: 11}[replaces]; len(points) != want {
			t.Errorf("the points are %q, want %d", points, want)
		}
		for _, point := range points {
			name := point
			if replaces {
				if strings.HasPrefix(point, "synced ") {
					continue // no other than the one before
				}
				name += ", over data"
			}
			t.Run(name, func(t *testing.T) {
				dir := prepare()
				killedAt(t, file, dir, point)
				want := "" // nothing
				switch {
				case point == "moved into place":
					want = "new"
				case replaces && point != "moved away":
					want = "old"
				}
				if _, err := os.Stat(filepath.Join(dir, memberDir)); (want == "") != errors.Is(err, os.ErrNotExist) {
					t.Fatalf("%s: %v, want %q", memberDir, err, want)
				}
				if want != "" {
					if got := valueIn(t, dir); got != want {
						t.Errorf("the data is %q, want %q", got, want)
					}
				}
				if point == "moved into place" {
					return
				}
				halve(t, filepath.Join(dir, restoringDir))
				if _, err := Restore(file, dir, asideDir); err != nil {
					t.Fatal(err)
				}
				if got := valueIn(t, dir); got != "new" {
					t.Errorf("the next restore leaves %q", got)
				}
				if _, err := os.Stat(filepath.Join(dir, restoringDir)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", restoringDir, err)
				}
				if replaces {
					if err := os.Rename(filepath.Join(dir, asideDir), filepath.Join(dir, memberDir+".first")); err != nil {
						t.Errorf("the data that was there is lost: %v", err)
					}
				}
			})
		}
	}
}

// memoryDir returns a directory that lives in memory if there is one: a process that is killed loses nothing that it has written.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "js-")
	if err != nil {
		return shortDir(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// halve takes away every second file of an interrupted restore, as if it had been killed while the library wrote them.
func halve(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "member", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range files {
		if i%2 == 1 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}
