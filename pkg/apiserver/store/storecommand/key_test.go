// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
)

func TestUnreadableObjectIsExportedAndRemoved(t *testing.T) {
	dir, m := etcdtest.Dir(t), newCluster(t)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "bad")
	e := startEmbedded(t, data)
	e.put(jobSets+"ns/good", encode(t, runtime.ContentTypeProtobuf, jobSet("good")))
	e.put(jobSets+"ns/bad", []byte("k8s\x00garbage\n\xff"))
	e.put(jobSets+"ns/secret", []byte("k8s:enc:secretbox:v1:one:xxx"))
	if r := m.run("status", "--data-dir="+data); !strings.Contains(r.out, `Cannot be read: "`+jobSets+`ns/bad": `) || !strings.Contains(r.out, "cannot be read: 1.") {
		t.Errorf("status: %+v", r)
	}
	want := `{"count":1,"objects":[{"cause":"`
	if r := m.run("status", "--data-dir="+data, "-o", "jsonpath={.unreadable}"); !strings.HasPrefix(r.out, want) || !strings.Contains(r.out, `"key":"`+jobSets+`ns/bad"`) {
		t.Errorf("status as data: %+v", r)
	}
	if r := m.run("export", file, "--data-dir="+data, "--key="+jobSets+"ns/bad"); r.code != 0 {
		t.Errorf("export: %+v", r)
	}
	if saved, err := os.ReadFile(file); err != nil || string(saved) != "k8s\x00garbage\n\xff" {
		t.Errorf("saved: %q, %v", saved, err)
	}
	for key, want := range map[string]string{
		"":                     "--key: must be set",
		"/registry/pods/ns/a":  "--key: must be /registry/jobset-apiserver/GROUP/RESOURCE/NAMESPACE/NAME",
		keyPrefix + "witness":  "--key: must be /registry/jobset-apiserver/GROUP",
		jobSets + "ns/another": "--key: the store has no key",
		jobSets + "ns/good":    "--key: " + jobSets + "ns/good can be read",
		jobSets + "ns/secret":  "--encryption-provider-config: must be set",
	} {
		if r := m.run("remove", "--data-dir="+data, "--key="+key); r.code != 1 || !strings.HasPrefix(r.message, want) {
			t.Errorf("remove %q: %+v, want %q", key, r, want)
		}
	}
	if r := m.run("remove", "--dry-run", "--data-dir="+data, "--key="+jobSets+"ns/bad"); r.code != 0 || !strings.HasPrefix(r.out, "Would remove "+jobSets+"ns/bad") {
		t.Errorf("remove as a dry run: %+v", r)
	}
	if r := m.run("remove", "--data-dir="+data, "--key="+jobSets+"ns/bad"); r.code != 0 || !strings.HasPrefix(r.out, "Removed "+jobSets+"ns/bad") {
		t.Errorf("remove: %+v", r)
	}
	response, err := e.client.Get(t.Context(), jobSets+"ns/bad")
	if err != nil || len(response.Kvs) != 0 {
		t.Errorf("the key is still there: %v, %v", response, err)
	}
}
