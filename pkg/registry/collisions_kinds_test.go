// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// sameJobOf is the warning about an owner that needs a Job.
func sameJobOf(owner, job string) string {
	return "metadata.name: the " + owner + ` needs a Job of the same name, "` + job + `"; the one that comes later waits for the name`
}

// sameServiceOf is the warning about an owner that needs a Service.
func sameServiceOf(owner, service string) string {
	return "metadata.name: the " + owner + ` needs a Service of the same name, "` + service + `"; pods of the one that comes later have no DNS names`
}

// TestNamesOfJobs creates JobSets and sequences beside others.
func TestNamesOfJobs(t *testing.T) {
	for name, c := range map[string]struct {
		exists, created runtime.Object
		want            []string
	}{
		"JobSets of which the longer name is there":  {jobSet("a-b", "0", 2), jobSet("a", "b-0", 1), []string{sameJobOf(`JobSet "a-b"`, "a-b-0-0")}},
		"JobSets of which the shorter name is there": {jobSet("a", "b-0", 1), jobSet("a-b", "0", 2), []string{sameJobOf(`JobSet "a"`, "a-b-0-0")}},
		"JobSets without Jobs":                       {jobSet("a", "b-0", 0), jobSet("a-b", "0", 2), nil},
		"a JobSet without Jobs":                      {jobSet("a", "b-0", 1), jobSet("a-b", "0", 0), nil},
		"another replicatedJob":                      {jobSet("a", "b-1", 1), jobSet("a-b", "0", 2), nil},
		"a JobSet that is being deleted":             {jobSet("a", "b-0", 1, goes), jobSet("a-b", "0", 2), nil},
		"a JobSet of another controller":             {jobSet("a", "b-0", 1, elsewhere), jobSet("a-b", "0", 2), nil},
		"a JobSet for another controller":            {jobSet("a", "b-0", 1), jobSet("a-b", "0", 2, elsewhere), nil},

		"a JobSet, and a step that needs its name": {sequence("etl", job, "jobSet/w"), jobSet("etl-1", "x", 1), []string{
			`metadata.name: step 1 of the SequentialJob "etl" needs a JobSet of the same name, "etl-1", and waits until this one is deleted`,
		}},
		"a JobSet, and a step that is a Job of the name":       {sequence("etl", job), jobSet("etl-0", "x", 1), nil},
		"a JobSet, and a name that no step has":                {sequence("etl", "jobSet/w"), jobSet("etl-00", "x", 1), nil},
		"a JobSet, and a sequence that has no such step":       {sequence("etl", "jobSet/w"), jobSet("etl-1", "x", 1), nil},
		"a JobSet, and a step that needs its Job":              {sequence("a-b", "jobSet/w", job), jobSet("a", "b", 2), []string{sameJobOf(`SequentialJob "a-b"`, "a-b-1")}},
		"a JobSet, and a step that needs a Job it has not got": {sequence("a-b", "jobSet/w", job), jobSet("a", "b", 1), nil},

		"a sequence, and a JobSet of the name of a step": {jobSet("etl-1", "x", 1), sequence("etl", job, "jobSet/w"), []string{
			`metadata.name: the JobSet "etl-1" exists and does not belong to the sequence; step 1 waits until it is deleted`,
		}},
		"a sequence, and a JobSet that needs the Job of a step":                  {jobSet("a", "b", 2), sequence("a-b", job, job, job), []string{sameJobOf(`JobSet "a"`, "a-b-0"), sameJobOf(`JobSet "a"`, "a-b-1")}},
		"a sequence, and a JobSet that needs a Job of the JobSet of a step":      {jobSet("etl", "0-w", 1), sequence("etl", "jobSet/w"), []string{sameJobOf(`JobSet "etl"`, "etl-0-w-0")}},
		"a sequence, and a sequence that needs a Job of the JobSet of a step":    {sequence("etl-0-w", job), sequence("etl", "jobSet/w"), []string{sameJobOf(`SequentialJob "etl-0-w"`, "etl-0-w-0")}},
		"a sequence, and a JobSet of another name":                               {jobSet("etl", "w", 1), sequence("etl", job, "jobSet/w"), nil},
		"a JobSet, and a LeaderWorkerSet of its name":                            {named("a", 1, 1, false), jobSet("a", "w", 1, subdomain("")), []string{sameServiceOf(`LeaderWorkerSet "a"`, "a")}},
		"a JobSet without a Service, and a LeaderWorkerSet":                      {named("a", 1, 1, false), jobSet("a", "w", 1), nil},
		"a JobSet, and a LeaderWorkerSet with a Service for each group":          {named("a", 1, 1, true), jobSet("a", "w", 1, subdomain("")), nil},
		"a LeaderWorkerSet, and a JobSet of its name":                            {jobSet("a", "w", 1, subdomain("")), named("a", 1, 1, false), []string{sameServiceOf(`JobSet "a"`, "a")}},
		"a LeaderWorkerSet, and a JobSet of its name with another subdomain":     {jobSet("a", "w", 1, subdomain("b")), named("a", 1, 1, false), nil},
		"a JobSet with the subdomain of another one":                             {jobSet("a", "w", 1, subdomain("")), jobSet("b", "w", 1, subdomain("a")), []string{sameServiceOf(`JobSet "a"`, "a") + "; use another spec.network.subdomain"}},
		"a JobSet with a subdomain that is the name of one with another Service": {jobSet("a", "w", 1, subdomain("x")), jobSet("b", "w", 1, subdomain("a")), nil},
	} {
		t.Run(name, func(t *testing.T) { expect(t, []runtime.Object{c.exists}, c.created, c.want...) })
	}
	t.Run("a sequence, and its own JobSet", func(t *testing.T) {
		sj := sequence("etl", "jobSet/w")
		own := jobSet("etl-0", "w", 1, func(js *jobset.JobSet) {
			js.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sj, schema.GroupVersionKind{Kind: "SequentialJob"})}
		})
		expect(t, []runtime.Object{own}, sj)
	})
}

// TestDisaggregatedSets creates a set beside what another one of its name has left.
func TestDisaggregatedSets(t *testing.T) {
	ds := &disaggregatedset.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "chat"}}
	ds.Spec.Slices = ptr.To[int32](2)
	ds.Spec.Roles = []disaggregatedset.DisaggregatedRoleSpec{{Name: "prefill"}, {Name: "decode", Scaling: &disaggregatedset.RoleScaling{Mode: disaggregatedset.RoleScalingExternal}}}
	versioned := &disaggregatedsetv1.DisaggregatedSet{}
	if err := disaggregatedsetv1.Convert_disaggregatedset_DisaggregatedSet_To_v1_DisaggregatedSet(ds, versioned, nil); err != nil {
		t.Fatal(err)
	}
	revision, err := helper.Revision(versioned)
	if err != nil {
		t.Fatal(err)
	}
	set := named(helper.SetName("chat", 1, revision, "prefill"), 1, 1, false)
	scaler := &disaggregatedset.DisaggregatedSetRoleScaler{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode"}}
	expect(t, nil, ds)
	expect(t, []runtime.Object{set, scaler}, ds,
		`metadata.name: the DisaggregatedSetRoleScaler "chat-decode" exists and does not belong to the set; role "decode" waits until it is deleted`,
		`metadata.name: the LeaderWorkerSet "`+set.Name+`" exists and does not belong to the set; role "prefill" of slice 1 waits until it is deleted`)
	for _, orphan := range []metav1.Object{set, scaler} {
		orphan.SetLabels(map[string]string{disaggregatedsetv1.SetNameLabelKey: "chat"})
	}
	expect(t, []runtime.Object{set, scaler}, ds) // they are adopted
	for _, own := range []metav1.Object{set, scaler} {
		own.SetLabels(nil)
		own.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(ds, schema.GroupVersionKind{Kind: "DisaggregatedSet"})})
	}
	expect(t, []runtime.Object{set, scaler}, ds)
	ds.Spec.Slices = ptr.To[int32](1_000_000)
	expect(t, []runtime.Object{set, scaler, &leaderworkerset.LeaderWorkerSet{}}, ds)
}
