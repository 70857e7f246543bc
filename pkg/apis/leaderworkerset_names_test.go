// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

func TestKeysAreThoseOfUpstream(t *testing.T) {
	for got, want := range map[string]string{
		helper.GroupKey("default", helper.LeaderPodName("leaderworkerset-sample", 0)): "9e1316d2ae590d1547fdcd8e941a83be8889e7d4",
		helper.GroupKey("default", "leaderworkerset-sample-1"):                        "a3cbc54d7769bc2f4ca9d8b493c21c3533607e4c",
		helper.SubGroupKey("leaderworkerset-sample-0", 0):                             "bbcb8915b3fc422b432777ae177705a012ab13d4",
		helper.SubGroupKey("leaderworkerset-sample-0", 1):                             "b71cdea44c94fd56ff2a33859b69330d4e88cc24",
		helper.WorkerPodName("a", 3, 12):                                              "a-3-12",
		helper.PodGroupName("a", 3, "k"):                                              "a-3-k",
		helper.CoschedulingName("a-3-k"):                                              "a-3-k",
		helper.CoschedulingName(strings.Repeat("a", 63)):                              strings.Repeat("a", 63),
		helper.CoschedulingName(strings.Repeat("a", 64)):                              strings.Repeat("a", 52) + "-0098ba824b",
		helper.CoschedulingName(strings.Repeat("a", 51) + "-1-0123456789"):            strings.Repeat("a", 51) + "-a47cb36f78",
		helper.HPAPodSelector("a"):                                                    "leaderworkerset.sigs.k8s.io/name=a,leaderworkerset.sigs.k8s.io/worker-index=0",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestParentAndOrdinal(t *testing.T) {
	for pod, want := range map[string]struct {
		parent  string
		ordinal int32
	}{
		"a-b-3": {"a-b", 3}, "a-0": {"a", 0}, "a-1-12": {"a-1", 12}, "-7": {"", 7}, "a": {"", -1}, "": {"", -1}, "a-": {"", -1}, "a-b": {"", -1}, "a-+3": {"", -1},
		"a-3x": {"", -1}, "a-99999999999": {"", -1},
	} {
		if parent, ordinal := helper.ParentAndOrdinal(pod); parent != want.parent || ordinal != want.ordinal {
			t.Errorf("%q: %q %d", pod, parent, ordinal)
		}
	}
}

func TestSubGroupIndex(t *testing.T) {
	for name, c := range map[string]struct {
		size, subGroupSize int32
		want               []int32 // of workers from 1
	}{
		"the size is a multiple":                 {4, 2, []int32{0, 1, 1}},
		"the leader is an extra member":          {5, 2, []int32{0, 0, 1, 1}},
		"subgroups of one":                       {3, 1, []int32{1, 2}},
		"one subgroup":                           {3, 3, []int32{0, 0}},
		"a size that validation does not let in": {3, 0, []int32{0, 0}},
	} {
		for i, want := range c.want {
			if got := helper.SubGroupIndex(c.size, c.subGroupSize, int32(i+1)); got != want {
				t.Errorf("%s: worker %d in subgroup %d, want %d", name, i+1, got, want)
			}
		}
	}
}

func TestEffectiveValues(t *testing.T) {
	type values struct{ unavailable, surge, leaderUnavailable int32 }
	for name, c := range map[string]struct {
		replicas           int32
		unavailable, surge *intstr.IntOrString
		want               values
	}{
		"absent":                             {4, nil, nil, values{1, 0, 1}},
		"percentages":                        {10, ptr.To(intstr.FromString("25%")), ptr.To(intstr.FromString("25%")), values{2, 3, 5}},
		"the surge is at most replicas":      {2, ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(4)), values{0, 2, 2}},
		"more unavailable than replicas":     {4, ptr.To(intstr.FromInt32(10)), nil, values{10, 0, 10}},
		"rounded to nothing after a scale":   {5, ptr.To(intstr.FromString("10%")), nil, values{0, 0, 1}},
		"no groups":                          {0, ptr.To(intstr.FromString("50%")), ptr.To(intstr.FromInt32(3)), values{0, 0, 1}},
		"more than a number of 32 bits":      {4, ptr.To(intstr.FromInt32(2147483647)), ptr.To(intstr.FromInt32(3)), values{2147483647, 3, 2147483647}},
		"a string that no version validates": {4, ptr.To(intstr.FromString("x")), ptr.To(intstr.FromString("x")), values{1, 0, 1}},
	} {
		set := &leaderworkersetv1.LeaderWorkerSet{Spec: leaderworkersetv1.LeaderWorkerSetSpec{Replicas: &c.replicas}}
		set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{MaxUnavailable: c.unavailable, MaxSurge: c.surge}
		if got := (values{helper.MaxUnavailable(set), helper.MaxSurge(set), helper.LeaderMaxUnavailable(set)}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	var empty leaderworkersetv1.LeaderWorkerSet
	if helper.Replicas(&empty) != 1 || helper.Size(&empty) != 1 || helper.Partition(&empty) != 0 || helper.MaxUnavailable(&empty) != 1 || helper.MaxSurge(&empty) != 0 || helper.Paused(&empty) || helper.SubGroupSize(&empty) != 0 ||
		helper.LeaderTemplate(&empty) != &empty.Spec.LeaderWorkerTemplate.WorkerTemplate || helper.Subdomain(nil, "a", "a-0") != "a" {
		t.Error("values of an empty set")
	}
	unique := &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	if helper.Subdomain(unique, "a", "a-0") != "a-0" {
		t.Error("subdomain of UniquePerReplica")
	}
}
