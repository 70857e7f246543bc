// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestCheckCountsWhatHasLostItsOwner(t *testing.T) {
	objects := []metav1.PartialObjectMetadata{
		owned("a", ours, "known"), owned("b", ours, "lost-1"), owned("c", ours, "lost-1"), owned("d", ours, "lost-2"),
		owned("another-version", "jobset.x-k8s.io/v9", "lost-3"),
		owned("of-a-cron-job", "batch/v1", "lost-4"), owned("of-a-workflow", "argoproj.io/v1alpha1", "lost-5"),
		owned("of-a-broken-owner", "a/b/c", "lost-6"), {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "free"}},
		owned("too-long", ours, types.UID(strings.Repeat("x", 129))),
	}
	claims := []metav1.PartialObjectMetadata{owned("x", ours, "known"), owned("y", ours, "lost-2"), owned("z", ours, "lost-7")}
	m := &mainCluster{
		t: t, jobCount: len(objects), jobs: func(i int) metav1.PartialObjectMetadata { return objects[i] },
		claimCount: len(claims), claims: func(i int) metav1.PartialObjectMetadata { return claims[i] },
	}
	got, err := m.checker(knows("known", "idle")).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := owners.Report{
		Owned: 6, Lost: 5, Names: []string{"ns/b", "ns/c", "ns/d", "ns/another-version", "ns/too-long"}, OwnedClaims: 3, LostClaims: 2,
		Owners: []types.UID{"lost-1", "lost-2", "lost-3", "lost-7"}, More: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestOwnersThatAppearMeanwhileAreNotLost: another server stores sets while the Jobs are listed.
func TestOwnersThatAppearMeanwhileAreNotLost(t *testing.T) {
	m := &mainCluster{t: t, jobCount: 3, jobs: func(i int) metav1.PartialObjectMetadata { return owned(fmt.Sprint("job-", i), ours, uidOf(i)) }}
	got, err := m.checker(func(call int) sets.Set[types.UID] {
		if call == 1 {
			return sets.New(uidOf(0))
		}
		return sets.New(uidOf(0), uidOf(2))
	}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(owners.Report{Owned: 3, Lost: 1, Names: []string{"ns/job-1"}, Owners: []types.UID{uidOf(1)}}, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestFewLostJobsAreTolerable(t *testing.T) {
	for name, tc := range map[string]struct {
		report owners.Report
		want   bool
	}{
		"nothing":                         {owners.Report{}, true},
		"ten of eleven":                   {owners.Report{Owned: 11, Lost: 10}, true},
		"eleven of eleven":                {owners.Report{Owned: 11, Lost: 11}, false},
		"one percent of many":             {owners.Report{Owned: 5099, Lost: 50}, true},
		"more than one percent of many":   {owners.Report{Owned: 5099, Lost: 51}, false},
		"ten claims, without Jobs":        {owners.Report{OwnedClaims: 10, LostClaims: 10}, true},
		"eleven claims, beside many Jobs": {owners.Report{Owned: 5000, OwnedClaims: 11, LostClaims: 11}, false},
	} {
		if got := tc.report.Tolerable(); got != tc.want {
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
		"once": {times: 1, wantPages: []string{"jobs 0", "jobs 500", "jobs 0", "jobs 500", "persistentvolumeclaims 0"}},
		"always": {times: 100, wantPages: []string{
			"jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500", "jobs 0", "jobs 500",
		}, wantErr: "listing the jobs of the main cluster: the continue token is too old"},
	} {
		times := tc.times
		m := &mainCluster{
			t: t, jobCount: 600, jobs: func(i int) metav1.PartialObjectMetadata { return owned(fmt.Sprint("job-", i), ours, uidOf(i)) },
			refuse: func(_ string, begin int) *apierrors.StatusError {
				if begin == 0 || times == 0 {
					return nil
				}
				times--
				return expired
			},
		}
		got, err := m.checker(knows()).Check(t.Context())
		message := ""
		if err != nil {
			message = err.Error()
		}
		if diff := cmp.Diff(tc.wantErr, message); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", name, diff)
		}
		if err == nil && (got.Owned != 600 || got.Lost != 600 || len(got.Names) != witness.MaxJobs || len(got.Owners) != 600) {
			t.Errorf("%s: %d Jobs, %d lost, %d names, %d owners", name, got.Owned, got.Lost, len(got.Names), len(got.Owners))
		}
		if diff := cmp.Diff(tc.wantPages, m.pages); diff != "" {
			t.Errorf("%s: pages (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorsEndTheCheck(t *testing.T) {
	for resource, want := range map[string]string{
		"jobs":                   "listing the jobs of the main cluster: ",
		"persistentvolumeclaims": "listing the persistentvolumeclaims of the main cluster: ",
	} {
		m := &mainCluster{t: t, refuse: func(asked string, _ int) *apierrors.StatusError {
			if asked != resource {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		}}
		if _, err := m.checker(knows()).Check(t.Context()); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := &mainCluster{t: t}
	checker := m.checker(knows())
	checker.Known = func(context.Context) (sets.Set[types.UID], error) { return nil, errors.New("etcd is away") }
	if _, err := checker.Check(t.Context()); err == nil || err.Error() != "listing the objects in the store: etcd is away" {
		t.Error(err)
	}
	if len(m.pages) != 0 {
		t.Errorf("the main cluster is asked without a store: %v", m.pages)
	}
}

// manyJobs is a cluster of 100,000 Jobs, as heavy as real ones, two of each set. All of them are lost.
func manyJobs(t testing.TB) *mainCluster {
	return &mainCluster{t: t, jobCount: 100_000, jobs: func(i int) metav1.PartialObjectMetadata {
		job := owned(fmt.Sprintf("training-of-a-language-model-workers-%06d", i), ours, uidOf(i/2))
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
	got, err := checker.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost != 100_000 || len(got.Owners) != witness.MaxLostOwners || got.More {
		t.Errorf("%d lost, %d owners, more: %t", got.Lost, len(got.Owners), got.More)
	}
	if most > before+16<<20 {
		t.Errorf("%d bytes are in use, more than 16 MiB", most-before)
	}
	t.Logf("at most %d KiB in use for %d Jobs", (most-before)>>10, got.Owned)
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
				if _, err := checker.Check(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
