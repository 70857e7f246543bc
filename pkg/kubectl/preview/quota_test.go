// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func quotaOf(hard, used corev1.ResourceList, change ...func(*corev1.ResourceQuota)) corev1.ResourceQuota {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	for _, f := range change {
		f(&q)
	}
	return q
}

func scope(names ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = names }
}

func priority(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}
	}
}

func TestQuota(t *testing.T) {
	// 3 pods of a driver kind and 10 with a GPU each.
	plain := &corev1.PodSpec{
		Containers:     []corev1.Container{container(list("cpu", "100m", "memory", "1Gi"), list("memory", "2Gi")), container(list("cpu", "100m"), nil)},
		InitContainers: []corev1.Container{container(list("cpu", "1"), nil)},
		Overhead:       list("cpu", "10m", "memory", "8Mi"),
	}
	gpu := &corev1.PodSpec{
		Containers:        []corev1.Container{container(list("cpu", "4", "nvidia.com/gpu", "1"), list("nvidia.com/gpu", "1"))},
		PriorityClassName: "high", ActiveDeadlineSeconds: ptr.To[int64](60),
	}
	u := usage{objects: corev1.ResourceList{}, pods: []podUsage{{plain, 3}, {gpu, 10}}}
	u.count(13, "count/jobs.batch")
	u.count(1, "services", "count/services")
	u.countClaim(&corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("fast"), Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "10Gi")},
	})
	line := func(resource, adds, used, hard, short string) QuotaLine {
		return QuotaLine{Quota: "team", Resource: resource, Adds: adds, Used: used, Hard: hard, Short: short}
	}

	for name, tc := range map[string]struct {
		quota corev1.ResourceQuota
		want  []QuotaLine
	}{
		"what the set does not count towards is left out": {
			quota: quotaOf(list("configmaps", "1", "requests.amd.com/gpu", "1"), nil),
		},
		"CPU with init containers and overhead, by both names": {
			quota: quotaOf(list("cpu", "43030m", "requests.cpu", "43"), list("cpu", "0", "requests.cpu", "1")),
			want:  []QuotaLine{line("cpu", "43030m", "0", "43030m", ""), line("requests.cpu", "43030m", "1", "43", "1030m")},
		},
		"limits, where there are some": {
			quota: quotaOf(list("limits.memory", "6168Mi", "limits.cpu", "1"), nil),
			want:  []QuotaLine{line("limits.memory", "6168Mi", "0", "6168Mi", "")},
		},
		"extended resources": {
			quota: quotaOf(list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "2")),
			want:  []QuotaLine{line("requests.nvidia.com/gpu", "10", "2", "8", "4")},
		},
		"objects": {
			quota: quotaOf(list("pods", "13", "count/pods", "12", "count/jobs.batch", "13", "services", "1", "count/services", "0"), nil),
			want: []QuotaLine{
				line("count/jobs.batch", "13", "0", "13", ""), line("count/pods", "13", "0", "12", "1"), line("count/services", "1", "0", "0", "1"),
				line("pods", "13", "0", "13", ""), line("services", "1", "0", "1", ""),
			},
		},
		"storage, at all and by class": {
			quota: quotaOf(list("requests.storage", "10Gi", "persistentvolumeclaims", "5", "fast.storageclass.storage.k8s.io/requests.storage", "5Gi",
				"slow.storageclass.storage.k8s.io/requests.storage", "0"), nil),
			want: []QuotaLine{
				line("fast.storageclass.storage.k8s.io/requests.storage", "10Gi", "0", "5Gi", "5Gi"),
				line("persistentvolumeclaims", "1", "0", "5", ""), line("requests.storage", "10Gi", "0", "10Gi", ""),
			},
		},
		"a scope is about pods only": {
			quota: quotaOf(list("pods", "20", "services", "0"), nil, scope(corev1.ResourceQuotaScopeNotBestEffort)),
			want:  []QuotaLine{line("pods", "13", "0", "20", "")},
		},
		"pods with a deadline": {
			quota: quotaOf(list("pods", "20"), nil, scope(corev1.ResourceQuotaScopeTerminating)),
			want:  []QuotaLine{line("pods", "10", "0", "20", "")},
		},
		"pods without a deadline": {
			quota: quotaOf(list("pods", "20"), nil, scope(corev1.ResourceQuotaScopeNotTerminating)),
			want:  []QuotaLine{line("pods", "3", "0", "20", "")},
		},
		"pods that ask for nothing": {
			quota: quotaOf(list("pods", "20"), nil, scope(corev1.ResourceQuotaScopeBestEffort)),
		},
		"pods with affinity to other namespaces": {
			quota: quotaOf(list("pods", "20"), nil, scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)),
		},
		"a scope of other objects": {
			quota: quotaOf(list("pods", "20"), nil, scope(corev1.ResourceQuotaScopeVolumeAttributesClass)),
		},
		"pods of a priority": {
			quota: quotaOf(list("pods", "20"), nil, priority(corev1.ScopeSelectorOpIn, "high", "higher")),
			want:  []QuotaLine{line("pods", "10", "0", "20", "")},
		},
		"pods of other priorities": {
			quota: quotaOf(list("pods", "20"), nil, priority(corev1.ScopeSelectorOpNotIn, "high")),
			want:  []QuotaLine{line("pods", "3", "0", "20", "")},
		},
		"pods of any priority": {
			quota: quotaOf(list("pods", "20"), nil, priority(corev1.ScopeSelectorOpExists)),
			want:  []QuotaLine{line("pods", "10", "0", "20", "")},
		},
		"pods of no priority": {
			quota: quotaOf(list("pods", "20"), nil, priority(corev1.ScopeSelectorOpDoesNotExist)),
			want:  []QuotaLine{line("pods", "3", "0", "20", "")},
		},
		"a quota that nobody has counted yet": {
			quota: corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "1")}},
			want:  []QuotaLine{line("pods", "13", "0", "1", "12")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, countQuota([]corev1.ResourceQuota{tc.quota}, u)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarsCountWithTheContainers(t *testing.T) {
	sidecar := container(list("cpu", "1"), list("cpu", "2"))
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	pod := &corev1.PodSpec{
		InitContainers: []corev1.Container{sidecar, container(nil, list("cpu", "5"))},
		Containers:     []corev1.Container{container(nil, list("cpu", "4", "memory", "1Gi"))},
	}
	if diff := cmp.Diff(list("cpu", "7", "memory", "1Gi"), podLimits(pod)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestSetsOfOneManifestShareTheQuota(t *testing.T) {
	a := &answers{
		sets: map[string]*jobsetv1alpha2.JobSet{
			"one": builders.JobSet("one", builders.WithJobs("w", 3, 2)), "two": builders.JobSet("two", builders.WithJobs("w", 3, 2)),
		},
		limits: []corev1.ResourceQuota{quotaOf(list("pods", "10"), list("pods", "1"))},
	}
	report, err := preview(t.Context(), &Session{cluster: a}, jobSetsOf("one", "two"))
	if err != nil {
		t.Fatal(err)
	}
	want := []QuotaLine{
		{Quota: "team", Resource: "pods", Adds: "6", Used: "1", Hard: "10"},
		{Quota: "team", Resource: "pods", Adds: "6", Used: "7", Hard: "10", Short: "3"},
	}
	if diff := cmp.Diff(want, slices.Concat(report.Sets[0].(*Set).Quota, report.Sets[1].(*Set).Quota)); diff != "" {
		t.Errorf("quota (-want +got):\n%s", diff)
	}
	if !report.Refused {
		t.Error("the second set does not fit, and the report is not refused")
	}
}
