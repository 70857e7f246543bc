// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestCheckCountsWhatHasLostItsOwner(t *testing.T) {
	objects := []metav1.PartialObjectMetadata{
		owned("a", jobSetVersion, "known"), owned("b", jobSetVersion, "lost-1"), owned("c", jobSetVersion, "lost-1"), owned("d", jobSetVersion, "lost-2"),
		owned("another-version", "jobset.x-k8s.io/v9", "lost-3"),
		owned("of-a-cron-job", "batch/v1", "lost-4"), owned("of-a-workflow", "argoproj.io/v1alpha1", "lost-5"),
		owned("of-a-broken-owner", "a/b/c", "lost-6"), {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "free"}},
		owned("too-long", jobSetVersion, types.UID(strings.Repeat("x", 129))),
	}
	going := owned("is-being-deleted", jobSetVersion, "lost-8")
	going.DeletionTimestamp = &metav1.Time{}
	objects = append(objects, going)
	claims := []metav1.PartialObjectMetadata{owned("x", jobSetVersion, "known"), owned("y", jobSetVersion, "lost-2"), owned("z", jobSetVersion, "lost-7")}
	m := &mainCluster{
		t: t, jobCount: len(objects), jobs: func(i int) metav1.PartialObjectMetadata { return objects[i] },
		claimCount: len(claims), claims: func(i int) metav1.PartialObjectMetadata { return claims[i] },
		others: map[string][]metav1.PartialObjectMetadata{
			"statefulsets":        {owned("s", lws, "lost-8"), owned("t", lws, "known"), owned("u", "apps/v1", "lost-9")},
			"services":            {owned("s", lws, "lost-8")},
			"controllerrevisions": {owned("r", lws, "known")},
			"podgroups":           {owned("p", jobSetVersion, "lost-2")},
			"workloads":           {owned("w", jobSetVersion, "lost-2")},
		},
	}
	got, err := m.checker(knows("known", "idle")).Check(t.Context(), groupsOfServer)
	if err != nil {
		t.Fatal(err)
	}
	want := []owners.Count{
		{Owned: 2, Lost: 1, Names: []string{"ns/s"}}, {Owned: 6, Lost: 5, Names: []string{"ns/b", "ns/c", "ns/d", "ns/another-version", "ns/too-long"}},
		{Owned: 3, Lost: 2, Names: []string{"ns/y", "ns/z"}}, {Owned: 1, Lost: 1, Names: []string{"ns/s"}}, {Owned: 1}, {Owned: 1, Lost: 1, Names: []string{"ns/p"}},
		{Owned: 1, Lost: 1, Names: []string{"ns/w"}},
	}
	for i, resource := range []int{0, 1, 2, 3, 4, 7, 9} {
		want[i].Resource = owners.Resources[resource]
	}
	if diff := cmp.Diff([]types.UID{"lost-1", "lost-2", "lost-3", "lost-7", "lost-8"}, got.Owners); diff != "" || !got.More {
		t.Errorf("owners (more: %t) (-want +got):\n%s", got.More, diff)
	}
	if diff := cmp.Diff(want, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestUnknownGroupsAreNotNone: a group that does not answer may have objects.
func TestUnknownGroupsAreNotNone(t *testing.T) {
	for path, want := range map[string]string{
		"/apis": "looking for the API groups of the main cluster: ", "/apis/kueue.x-k8s.io/v1beta1": "looking for the resources of kueue.x-k8s.io/v1beta1 in the main cluster: ",
	} {
		m := &mainCluster{t: t}
		checker := m.checker(knows())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == path {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			m.ServeHTTP(w, req)
		}))
		defer server.Close()
		var err error
		if checker.Discovery, err = discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1}); err != nil {
			t.Fatal(err)
		}
		if _, err := checker.Check(t.Context(), groupsOfServer); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestOwnersThatAppearMeanwhileAreNotLost: another server stores sets while the Jobs are listed.
func TestOwnersThatAppearMeanwhileAreNotLost(t *testing.T) {
	m := &mainCluster{t: t, jobCount: 3, jobs: func(i int) metav1.PartialObjectMetadata { return owned(fmt.Sprint("job-", i), jobSetVersion, uidOf(i)) }}
	got, err := m.checker(func(call int) sets.Set[types.UID] {
		if call == 1 {
			return sets.New(uidOf(0))
		}
		return sets.New(uidOf(0), uidOf(2))
	}).Check(t.Context(), groupsOfServer)
	if err != nil {
		t.Fatal(err)
	}
	want := owners.Report{Counts: []owners.Count{{Resource: owners.Resources[1], Owned: 3, Lost: 1, Names: []string{"ns/job-1"}}}, Owners: []types.UID{uidOf(1)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestFewLostObjectsAreTolerable(t *testing.T) {
	for name, tc := range map[string]struct {
		counts []owners.Count
		want   bool
	}{
		"nothing":                       {nil, true},
		"ten of eleven":                 {[]owners.Count{{Owned: 11, Lost: 10}}, true},
		"eleven of eleven":              {[]owners.Count{{Owned: 11, Lost: 11}}, false},
		"one percent of many":           {[]owners.Count{{Owned: 5099, Lost: 50}}, true},
		"more than one percent of many": {[]owners.Count{{Owned: 5099, Lost: 51}}, false},
		"one of many with pods":         {[]owners.Count{{Resource: owners.Resources[0], Owned: 5099, Lost: 1}}, false},
		"one Job":                       {[]owners.Count{{Resource: owners.Resources[1], Owned: 5099, Lost: 1}}, false},
		"one claim":                     {[]owners.Count{{Resource: owners.Resources[2], Owned: 5099, Lost: 1}}, false},
		"ten Services":                  {[]owners.Count{{Resource: owners.Resources[3], Owned: 10, Lost: 10}}, true},
		"eleven of two resources":       {[]owners.Count{{Owned: 10, Lost: 5}, {Owned: 10, Lost: 6}}, false},
	} {
		if got := (owners.Report{Counts: tc.counts}).Tolerable(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestExpiredListsStartAgain(t *testing.T) {
	expired := apierrors.NewResourceExpired("the continue token is too old")
	for name, tc := range map[string]struct {
		// times is how often the second page is expired.
		times     int
		wantPages []string
		wantErr   string
	}{
		"once": {times: 1, wantPages: []string{
			"statefulsets 0", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "persistentvolumeclaims 0", "services 0", "controllerrevisions 0", "podgroups 0", "workloads 0",
		}},
		"always": {times: 100, wantPages: []string{
			"statefulsets 0", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500",
		}, wantErr: "listing the jobs of the main cluster: the continue token is too old"},
	} {
		times := tc.times
		m := &mainCluster{
			t: t, jobCount: 600, jobs: func(i int) metav1.PartialObjectMetadata { return owned(fmt.Sprint("job-", i), jobSetVersion, uidOf(i)) },
			refuse: func(_ string, begin int) *apierrors.StatusError {
				if begin == 0 || times == 0 {
					return nil
				}
				times--
				return expired
			},
		}
		got, err := m.checker(knows()).Check(t.Context(), groupsOfServer)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if diff := cmp.Diff(tc.wantErr, message); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", name, diff)
		}
		if err == nil && (got.Owned() != 600 || got.Lost() != 600 || len(got.Counts[0].Names) != witness.MaxJobs || len(got.Owners) != 600) {
			t.Errorf("%s: %d Jobs, %d lost, %d names, %d owners", name, got.Owned(), got.Lost(), len(got.Counts[0].Names), len(got.Owners))
		}
		if diff := cmp.Diff(tc.wantPages, m.pages); diff != "" {
			t.Errorf("%s: pages (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorsEndTheCheck(t *testing.T) {
	for resource, want := range map[string]string{
		"jobs":                   "listing the jobs of the main cluster: ",
		"statefulsets":           "listing the statefulsets of the main cluster: ",
		"workloads":              "listing the workloads of the main cluster: ",
		"persistentvolumeclaims": "listing the persistentvolumeclaims of the main cluster: ",
	} {
		m := &mainCluster{t: t, refuse: func(asked string, _ int) *apierrors.StatusError {
			if asked != resource {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		}}
		if _, err := m.checker(knows()).Check(t.Context(), groupsOfServer); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := &mainCluster{t: t}
	checker := m.checker(knows())
	checker.Known = func(context.Context) (sets.Set[types.UID], error) { return nil, errors.New("etcd is away") }
	if _, err := checker.Check(t.Context(), groupsOfServer); err == nil || err.Error() != "listing the objects in the store: etcd is away" {
		t.Error(err)
	}
	if len(m.pages) != 0 {
		t.Errorf("the main cluster is asked without a store: %v", m.pages)
	}
}

// manyJobs is a cluster of 100,000 Jobs, as heavy as real ones, two of each set. All of them are lost.
func manyJobs(t testing.TB) *mainCluster {
	return &mainCluster{t: t, jobCount: 100_000, jobs: func(i int) metav1.PartialObjectMetadata {
		job := owned(fmt.Sprintf("training-of-a-language-model-workers-%06d", i), jobSetVersion, uidOf(i/2))
		job.UID, job.ResourceVersion = uidOf(1e6+i), fmt.Sprint(i)
		job.Labels = map[string]string{"jobset.sigs.k8s.io/jobset-name": "training-of-a-language-model", "jobset.sigs.k8s.io/job-index": fmt.Sprint(i)}
		job.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "jobset-controller", APIVersion: "batch/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 3000))},
		}
		return job
	}}
}

// TestMemoryOfCheckIsBounded measures what is alive before each page. 50,000 UIDs of 36 bytes, and what maps and slices of them
// take, are less than 16 MiB.
func TestMemoryOfCheckIsBounded(t *testing.T) {
	m := manyJobs(t)
	checker := m.checker(knows())
	live := func() uint64 {
		var stats goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, most, pages := live(), uint64(0), 0
	m.before = func() {
		if pages++; pages%20 == 0 {
			most = max(most, live())
		}
	}
	got, err := checker.Check(t.Context(), groupsOfServer)
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost() != 100_000 || len(got.Owners) != witness.MaxLostOwners || got.More {
		t.Errorf("%d lost, %d owners, more: %t", got.Lost(), len(got.Owners), got.More)
	}
	if most > before+16<<20 {
		t.Errorf("%d bytes are in use, more than 16 MiB", most-before)
	}
	t.Logf("at most %d KiB in use for %d Jobs", (most-before)>>10, got.Owned())
}

func BenchmarkCheck(b *testing.B) {
	for name, known := range map[string]func(int) sets.Set[types.UID]{"all lost": knows(), "none lost": func() func(int) sets.Set[types.UID] {
		all := sets.New[types.UID]()
		for i := range 50_000 {
			all.Insert(uidOf(i))
		}
		return func(int) sets.Set[types.UID] { return all }
	}()} {
		b.Run(name, func(b *testing.B) {
			checker := manyJobs(b).checker(known)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := checker.Check(b.Context(), groupsOfServer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
