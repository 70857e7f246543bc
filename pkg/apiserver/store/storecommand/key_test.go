// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

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

// TestChildrenOfUnreadableObject removes an object whose UID cannot be read. Its children name it as their owner; the garbage collector
// knows owners by their UIDs, and would let them run until it starts again.
func TestChildrenOfUnreadableObject(t *testing.T) {
	owned := func(kind, owner string) metav1.OwnerReference {
		ref := reference("jobset.x-k8s.io/v1alpha2", kind, "uid-nobody-knows")
		ref.Name = owner
		return ref
	}
	everything := func() *mainCluster {
		away := job("elsewhere", owned("JobSet", "bad"))
		away.Namespace = "other"
		return newCluster(t, job("mine", owned("JobSet", "bad")), job("of-another", owned("JobSet", "good")), job("free"), away,
			job("of-another-kind", owned("Job", "bad")), job("of-two", owned("JobSet", "bad"), reference("v1", "ConfigMap", "other")),
			object("v1", "Service", "bad", owned("JobSet", "bad")))
	}
	damaged := encode(t, runtime.ContentTypeProtobuf, jobSet("bad"))
	damaged = bytes.Replace(damaged, []byte("JobSet"), []byte("JobZet"), 1) // its metadata can be read
	for name, tc := range map[string]struct {
		stored    []byte
		flags     []string
		denied    bool
		want      []string
		wantError string
		wantJobs  string
	}{
		"by default":                       {want: []string{"job/mine in namespace ns belongs to it", "service/bad in namespace ns belongs to it", "--children=release"}, wantJobs: "mine of-two"},
		"as a dry run":                     {flags: []string{"--dry-run", "--children=delete"}, want: []string{"job/mine in namespace ns would be deleted", "Would remove"}, wantJobs: "mine of-two"},
		"to be released":                   {flags: []string{"--children=release"}, want: []string{"job/mine in namespace ns was released", "job/of-two in namespace ns was released", "Removed"}},
		"to be deleted":                    {flags: []string{"--children=delete"}, want: []string{"job/mine in namespace ns was deleted", "job/of-two in namespace ns was released", "Removed"}, wantJobs: "- mine"},
		"with a UID":                       {stored: damaged, want: []string{"Removed"}, wantJobs: "mine of-two"},
		"with a UID, to be released":       {stored: damaged, flags: []string{"--children=release"}, want: []string{"job/mine in namespace ns was released", "Removed"}},
		"with no idea":                     {flags: []string{"--children=orphan"}, wantError: `--children: must be name, release or delete, not "orphan"`, wantJobs: "mine of-two"},
		"without permission":               {denied: true, want: []string{"its children are not known", "Removed"}, wantJobs: "mine of-two"},
		"to be deleted without permission": {denied: true, flags: []string{"--children=delete"}, wantError: "The object was not removed", wantJobs: "mine of-two"},
	} {
		t.Run(name, func(t *testing.T) {
			data, m := filepath.Join(etcdtest.Dir(t), "data"), everything()
			e := startEmbedded(t, data)
			if tc.stored == nil {
				tc.stored = []byte("k8s\x00garbage\n\xff")
			}
			e.put(jobSets+"ns/bad", tc.stored)
			if tc.denied {
				m.fake().PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", errors.New("no"))
				})
			}
			r := m.run(append([]string{"remove", "--data-dir=" + data, "--key=" + jobSets + "ns/bad"}, tc.flags...)...)
			if (r.code != 0) != (tc.wantError != "") || !strings.Contains(r.message, tc.wantError) {
				t.Errorf("result %+v, want the error %q", r, tc.wantError)
			}
			for _, want := range tc.want {
				if !strings.Contains(r.out+r.errOut, want) {
					t.Errorf("it does not say %q: %+v", want, r)
				}
			}
			if strings.Contains(r.out, "elsewhere") || strings.Contains(r.out, "another") || strings.Contains(r.out, "free") {
				t.Errorf("children of others: %s", r.out)
			}
			left, err := e.client.Get(t.Context(), jobSets+"ns/bad")
			if stays := tc.wantError != "" || slices.Contains(tc.flags, "--dry-run"); err != nil || (len(left.Kvs) == 1) != stays {
				t.Errorf("the key is there: %v (%v), want %t", left.Kvs, err, stays)
			}
			m.fake().ReactionChain = m.fake().ReactionChain[len(m.fake().ReactionChain)-1:]
			checkOwned(t, m, tc.wantJobs)
		})
	}
}

// checkOwned compares the Jobs that name the owner "bad", and those that are gone, after a dash.
func checkOwned(t *testing.T, m *mainCluster, want string) {
	t.Helper()
	var owned, gone []string
	for _, name := range []string{"mine", "of-two"} {
		live, err := m.metadata.Resource(jobs).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			gone = append(gone, name)
		case slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Name == "bad" }):
			owned = append(owned, name)
		}
	}
	got := strings.Join(owned, " ")
	if len(gone) > 0 {
		got = strings.TrimSpace(got + " - " + strings.Join(gone, " "))
	}
	if got != want {
		t.Errorf("Jobs that still have their owner, and that are gone: %q, want %q", got, want)
	}
}
