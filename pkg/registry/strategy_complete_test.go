// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/randfill"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// TestFieldsThatUpstreamLacksAreKept finds fields of this project by comparing the types with the fields that upstream's types have: an update by
// a client with these types must not lose the others (docs/compatibility.md#fields-that-upstreams-types-lack).
func TestFieldsThatUpstreamLacksAreKept(t *testing.T) {
	for _, tc := range []struct {
		kind, part string
		status     bool
		versioned  reflect.Type
		of         func(object) any
		// upstream has the fields of upstream's release, and those of its next line, which its clients must be able to remove.
		upstream string
	}{
		{
			"JobSet", "spec", false, reflect.TypeFor[jobsetv1alpha2.JobSetSpec](), func(o object) any { return &o.(*jobset.JobSet).Spec },
			"replicatedJobs network successPolicy failurePolicy startupPolicy suspend coordinator managedBy ttlSecondsAfterFinished volumeClaimPolicies " +
				"activeDeadlineSeconds scheduling",
		},
		{
			"JobSet", "status", true, reflect.TypeFor[jobsetv1alpha2.JobSetStatus](), func(o object) any { return &o.(*jobset.JobSet).Status },
			"conditions restarts restartsCountTowardsMax terminalState replicatedJobsStatus previousInPlaceRestartAttempt currentInPlaceRestartAttempt startTime",
		},
		{
			"LeaderWorkerSet", "spec", false, reflect.TypeFor[leaderworkersetv1.LeaderWorkerSetSpec](),
			func(o object) any { return &o.(*leaderworkerset.LeaderWorkerSet).Spec },
			"replicas leaderWorkerTemplate rolloutStrategy startupPolicy networkConfig",
		},
		{
			"LeaderWorkerSet", "template", false, reflect.TypeFor[leaderworkersetv1.LeaderWorkerTemplate](),
			func(o object) any { return &o.(*leaderworkerset.LeaderWorkerSet).Spec.LeaderWorkerTemplate },
			"leaderTemplate workerTemplate size restartPolicy subGroupPolicy volumeClaimTemplates persistentVolumeClaimRetentionPolicy",
		},
		{
			"LeaderWorkerSet", "status", true, reflect.TypeFor[leaderworkersetv1.LeaderWorkerSetStatus](),
			func(o object) any { return &o.(*leaderworkerset.LeaderWorkerSet).Status },
			"conditions readyReplicas updatedReplicas replicas hpaPodSelector observedGeneration",
		},
	} {
		upstream, found := strings.Fields(tc.upstream), 0
		for field := range tc.versioned.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if slices.Contains(upstream, name) {
				found++
				continue
			}
			k := kinds()[tc.kind]
			prev := k.created(t)
			if set, is := prev.(*leaderworkerset.LeaderWorkerSet); is { // without restarts there is no limit of them
				set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkerset.RestartPolicyRecreateGroupOnPodRestart
			}
			valueOf := func(o object) reflect.Value { return reflect.ValueOf(tc.of(o)).Elem().FieldByName(field.Name) }
			randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(6).Fill(valueOf(prev).Addr().Interface())
			next := prev.DeepCopyObject().(object)
			valueOf(next).SetZero()
			prepare := k.main.PrepareForUpdate
			if tc.status {
				prepare = k.status.PrepareForUpdate
			}
			prepare(withVerb(t.Context(), "update"), next, prev)
			if diff := cmp.Diff(valueOf(prev).Interface(), valueOf(next).Interface()); diff != "" {
				t.Errorf("%s, %s: an update by a client that lacks the field %s loses it (-stored +updated):\n%s", tc.kind, tc.part, name, diff)
			}
		}
		if found != len(upstream) {
			t.Errorf("%s, %s: %d of the fields of upstream exist, want %d", tc.kind, tc.part, found, len(upstream))
		}
	}
}
