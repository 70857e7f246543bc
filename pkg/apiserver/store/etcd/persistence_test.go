// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPersistent(t *testing.T) {
	temporary := t.TempDir()
	cases := map[string]struct {
		dir  string
		want string
	}{
		"a directory of the system that does not exist yet": {dir: "/var/lib/jobset-apiserver/data"},
		"a temporary directory":                             {dir: temporary, want: "is a temporary directory"},
		"a temporary directory that does not exist yet":     {dir: filepath.Join(temporary, "a", "b"), want: "is a temporary directory"},
		"the temporary directory itself":                    {dir: os.TempDir(), want: "is a temporary directory"},
		"the other temporary directory":                     {dir: "/var/tmp/jobset", want: "is a temporary directory"},
		"shared memory":                                     {dir: "/dev/shm/jobset", want: "is a temporary directory"},
		"a way around":                                      {dir: "/var/lib/../tmp/jobset", want: "is a temporary directory"},
		"a name that only begins like a temporary one":      {dir: "/tmpfiles/jobset"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckPersistent(c.dir)
			if c.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v, not %q", err, c.want)
			}
		})
	}
}

func TestCheckPersistentFollowsLinks(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/shm", link); err != nil {
		t.Fatal(err)
	}
	resolved, err := resolve(filepath.Join(link, "data"))
	if err != nil || resolved != "/dev/shm/data" {
		t.Errorf("resolved to %q: %v", resolved, err)
	}
}

func TestLivesInMemory(t *testing.T) {
	cases := map[string]struct {
		magic int64
		want  bool
	}{
		"tmpfs": {magic: 0x01021994, want: true},
		"ramfs": {magic: 0x858458f6, want: true},
		"ext4":  {magic: 0xef53},
		"xfs":   {magic: 0x58465342},
		"nfs":   {magic: 0x6969},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := livesInMemory(c.magic); got != c.want {
				t.Errorf("livesInMemory = %t", got)
			}
		})
	}
}
