// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

const exclusive = "leaderworkerset.sigs.k8s.io/exclusive-topology"

func template(fields string) string {
	return "{leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: a, image: b}]}}, " + fields + "}}"
}

// paths returns the field of each warning.
func paths(warnings []string) []string {
	var out []string
	for _, warning := range warnings {
		path, _, _ := strings.Cut(warning, ": ")
		out = append(out, path)
	}
	return out
}

func TestWarningsOnCreate(t *testing.T) {
	claims := "volumeClaimTemplates: [{metadata: {name: v}}], persistentVolumeClaimRetentionPolicy: "
	const retention = "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy."
	for name, tc := range map[string]struct {
		name, spec string
		want       []string
	}{
		"nothing":                            {spec: simple},
		"a name that fits":                   {name: strings.Repeat("a", 49), spec: simple},
		"a name near the limit":              {name: strings.Repeat("a", 50), spec: simple, want: []string{"metadata.name"}},
		"a name over what long hashes leave": {name: strings.Repeat("a", 51), spec: simple, want: []string{"metadata.name"}},
		"a long name and groups of one pod":  {name: strings.Repeat("a", 52), spec: "{leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: a, image: b}]}}}}"},
		"a longer name and groups of one":    {name: strings.Repeat("a", 53), spec: "{leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: a, image: b}]}}}}", want: []string{"metadata.name"}},
		"Delete":                             {spec: template(claims + "{whenDeleted: Delete}"), want: []string{retention + "whenDeleted"}},
		"Delete and the policy None":         {spec: template("restartPolicy: None, " + claims + "{whenDeleted: Delete}"), want: []string{retention + "whenDeleted"}},
		"Delete without claims":              {spec: template("persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}")},
		"Delete without workers":             {spec: template("size: 1, " + claims + "{whenDeleted: Delete}")},
		"Retain":                             {spec: template(claims + "{whenDeleted: Retain, whenScaled: Delete}")},
		"unknown retention":                  {spec: template(claims + "{whenDeleted: A, whenScaled: B}"), want: []string{retention + "whenDeleted", retention + "whenScaled"}},
		"a backoff without restarts":         {spec: "{groupRestartBackoff: {}, " + template("restartPolicy: None")[1:], want: []string{"spec.groupRestartBackoff"}},
		"pods that cannot be created": {
			spec: "{leaderWorkerTemplate: {leaderTemplate: {spec: {restartPolicy: Never, containers: [{name: a}]}}, workerTemplate: {spec: {containers: [{name: a, image: b, " +
				"volumeMounts: [{name: data, mountPath: /d}], ports: [{containerPort: 99999}]}]}}}}",
			want: []string{
				"spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0].image", "spec.leaderWorkerTemplate.leaderTemplate.spec.restartPolicy",
				"spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].volumeMounts[0].name", "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].ports[0].containerPort",
			},
		},
		"a volume that is a claim": {
			spec: "{leaderWorkerTemplate: {volumeClaimTemplates: [{metadata: {name: data}}], workerTemplate: {spec: {restartPolicy: Always, containers: [{name: a, image: b, " +
				"volumeMounts: [{name: data, mountPath: /d}]}]}}}}",
		},
		"a backoff": {spec: "{groupRestartBackoff: {}, " + template("restartPolicy: RecreateGroupAfterStart")[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = "a"
			}
			spec := strings.Replace(tc.spec, "size: 2, workerTemplate: {spec: {containers: [{name: a, image: b}]}}, size: 1", "size: 1, workerTemplate: {spec: {containers: [{name: a, image: b}]}}", 1)
			got := newStrategy().WarningsOnCreate(t.Context(), set(t, tc.name, spec))
			if diff := cmp.Diff(tc.want, paths(got)); diff != "" {
				t.Errorf("warnings of %q (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestWarningsOnUpdate(t *testing.T) {
	long := strings.Repeat("a", 51)
	for name, tc := range map[string]struct {
		name        string
		old, change func(*leaderworkerset.LeaderWorkerSet)
		want        []string
	}{
		"nothing": {},
		"claims": {
			change: func(lws *leaderworkerset.LeaderWorkerSet) {
				lws.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "v"}}}
			},
			want: []string{"spec.leaderWorkerTemplate.volumeClaimTemplates"},
		},
		"exclusive placement is added": {
			change: func(lws *leaderworkerset.LeaderWorkerSet) { lws.Annotations = map[string]string{exclusive: "rack"} },
			want:   []string{"metadata.annotations[" + exclusive + "]"},
		},
		"exclusive placement is removed": {
			old:  func(lws *leaderworkerset.LeaderWorkerSet) { lws.Annotations = map[string]string{exclusive: "rack"} },
			want: []string{"metadata.annotations[" + exclusive + "]"},
		},
		"another annotation": {change: func(lws *leaderworkerset.LeaderWorkerSet) { lws.Annotations = map[string]string{"a": "b"} }},
		"what is warned of already": {
			old:    func(lws *leaderworkerset.LeaderWorkerSet) { lws.Name = long },
			change: func(lws *leaderworkerset.LeaderWorkerSet) { lws.Name = long },
		},
		"more groups than the name leaves room for": {
			old: func(lws *leaderworkerset.LeaderWorkerSet) { lws.Name = long },
			change: func(lws *leaderworkerset.LeaderWorkerSet) {
				lws.Name, lws.Spec.Replicas = long, ptr.To[int32](11)
			},
			want: []string{"metadata.name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := set(t, "a", simple), set(t, "a", simple)
			if tc.old != nil {
				tc.old(old)
			}
			if tc.change != nil {
				tc.change(next)
			}
			for what, warn := range map[string]func() []string{
				"update": func() []string { return newStrategy().WarningsOnUpdate(t.Context(), next, old) },
				"scale": func() []string {
					return strategy.NewScaleStrategy(newStrategy()).WarningsOnUpdate(t.Context(), next, old)
				},
			} {
				if diff := cmp.Diff(tc.want, paths(warn())); diff != "" {
					t.Errorf("%s: warnings of %q (-want +got):\n%s", what, warn(), diff)
				}
			}
		})
	}
}
