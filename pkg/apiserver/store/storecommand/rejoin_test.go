// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
)

func TestRejoin(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no directory": {nil, "--data-dir: must be set to the directory of the server"},
		"no data":      {[]string{"--data-dir=" + dir}, "--data-dir: " + dir + " has no data: a member without data joins the others when its server starts"},
	} {
		if got := c.run(append([]string{"rejoin"}, tc.args...)...); got.code == 0 || !strings.Contains(got.message, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
	file := filepath.Join(dir, "etcd", "member", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	running, err := etcd.Open(etcd.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.run("rejoin", "--data-dir="+dir); got.code == 0 || !strings.Contains(got.message, ": stop the server first") {
		t.Errorf("while a server runs: %+v", got)
	}
	running.Close()
	if got := c.run("rejoin", "--data-dir="+dir); got.code != 0 || !strings.HasPrefix(got.out, "The data of the member are in "+dir+"/etcd.old-") {
		t.Errorf("%+v", got)
	}
	moved, err := filepath.Glob(filepath.Join(dir, "etcd.old-*", "member", "file"))
	if err != nil || len(moved) != 1 {
		t.Errorf("moved %v, %v", moved, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("the data are still there: %v", err)
	}
}
