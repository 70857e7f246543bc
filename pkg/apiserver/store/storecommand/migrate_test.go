// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

var jobSetResource = schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}

// aggregated is a main cluster whose aggregated server answers updates as a test says, by name and attempt.
func aggregated(t *testing.T, answer func(name string, attempt int) (version string, err error), names ...string) *mainCluster {
	t.Helper()
	var objects []runtime.Object
	for _, name := range names {
		set := object("jobset.x-k8s.io/v1alpha2", "JobSet", name)
		set.ResourceVersion = "7"
		objects = append(objects, set)
	}
	m := newCluster(t, objects...)
	attempts, mu := map[string]int{}, sync.Mutex{}
	client := m.metadata.(*metadatafake.FakeMetadataClient)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		mu.Lock()
		attempts[patch.GetName()]++
		version, err := answer(patch.GetName(), attempts[patch.GetName()])
		mu.Unlock()
		if want := fmt.Sprintf(`{"metadata":{"uid":"uid-of-%s"}}`, patch.GetName()); string(patch.GetPatch()) != want {
			t.Errorf("the patch is %s, want %s", patch.GetPatch(), want)
		}
		return true, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, err
	})
	return m
}

func TestMigrate(t *testing.T) {
	conflict := apierrors.NewConflict(jobSetResource, "a", nil)
	gone := apierrors.NewNotFound(jobSetResource, "a")
	invalid := apierrors.NewBadRequest("it is invalid")
	for name, tc := range map[string]struct {
		answer func(name string, attempt int) (string, error)
		args   []string
		want   result
	}{
		"one is written": {
			answer: func(name string, _ int) (string, error) { return map[string]string{"a": "8", "b": "7"}[name], nil },
			want:   result{out: "jobsets.jobset.x-k8s.io: 2 objects, 1 written\n"},
		},
		"one is written by others at the same time": {
			answer: func(name string, attempt int) (string, error) {
				if name == "a" && attempt < maxConflicts {
					return "", conflict
				}
				return "8", nil
			},
			want: result{out: "jobsets.jobset.x-k8s.io: 2 objects, 2 written\n"},
		},
		"one is always written by others": {
			answer: func(name string, _ int) (string, error) {
				if name == "a" {
					return "", conflict
				}
				return "8", nil
			},
			want: result{
				out: "jobsets.jobset.x-k8s.io: 2 objects, 1 written\n", code: 1,
				errOut:  "jobsets.jobset.x-k8s.io ns/a not written: " + conflict.Error() + "\n",
				message: "1 object was not written: correct the causes above and run the command again",
			},
		},
		"one is gone": {
			answer: func(name string, _ int) (string, error) { return "7", map[string]error{"a": gone}[name] },
			want:   result{out: "jobsets.jobset.x-k8s.io: 2 objects, 0 written\n"},
		},
		"both are refused": {
			answer: func(string, int) (string, error) { return "", invalid },
			want: result{
				out: "jobsets.jobset.x-k8s.io: 2 objects, 0 written\n", code: 1,
				errOut:  "jobsets.jobset.x-k8s.io ns/a not written: it is invalid\njobsets.jobset.x-k8s.io ns/b not written: it is invalid\n",
				message: "2 objects were not written: correct the causes above and run the command again",
			},
		},
		"nothing is sent": {
			answer: func(string, int) (string, error) { t.Error("a request was sent"); return "", nil },
			args:   []string{"--dry-run=client"},
			want:   result{out: "jobsets.jobset.x-k8s.io: 2 objects, 0 written (dry run)\n"},
		},
	} {
		got := aggregated(t, tc.answer, "a", "b").run(append([]string{"migrate"}, tc.args...)...)
		lines := strings.SplitAfter(got.out, "\n")
		if len(lines) != len(apigroups.All().Stored())+1 {
			t.Errorf("%s: the output is %q", name, got.out)
		}
		got.out = lines[0]
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMigrateNamesFewObjects(t *testing.T) {
	var names []string
	for i := range 2 * maxProblems {
		names = append(names, fmt.Sprintf("set-%02d", i))
	}
	got := aggregated(t, func(string, int) (string, error) { return "", apierrors.NewBadRequest("no") }, names...).run("migrate")
	if got.code != 1 || strings.Count(got.errOut, "\n") != maxProblems || !strings.HasPrefix(got.message, "40 objects were not written") {
		t.Errorf("%+v", got)
	}
}

func TestMigrateAnotherCluster(t *testing.T) {
	m := newCluster(t)
	m.metadata.(*metadatafake.FakeMetadataClient).PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	got := m.run("migrate")
	if got.code != 1 || !strings.HasPrefix(got.message, "the cluster serves no resources of jobset-apiserver: ") || strings.Count(got.errOut, "not served") != len(apigroups.All().Stored()) {
		t.Errorf("%+v", got)
	}
}
