// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// TestRules has a case for each row of docs/reference/leaderworkerset.md#validation, and for each row of the published schema.
func TestRules(t *testing.T) {
	workers := "spec.leaderWorkerTemplate.workerTemplate"
	for name, tc := range map[string]struct {
		patch string
		want  []string
	}{
		"nothing is changed":                    {},
		"schema: no spec":                       {"spec: null", required(workers)},
		"schema: no template":                   {"spec: {leaderWorkerTemplate: null}", required(workers)},
		"schema: no workerTemplate":             {template("workerTemplate: null"), required(workers)},
		"schema: no containers":                 {template("workerTemplate: {metadata: {labels: {a: b}}, spec: {containers: null}}"), required(workers + ".spec.containers")},
		"schema: no containers of the leader":   {template("leaderTemplate: {spec: {hostNetwork: true}}"), required("spec.leaderWorkerTemplate.leaderTemplate.spec.containers")},
		"schema: an empty leaderTemplate":       {template("leaderTemplate: {}"), required("spec.leaderWorkerTemplate.leaderTemplate")},
		"schema: restartPolicy":                 {template("restartPolicy: Always"), unsupported("spec.leaderWorkerTemplate.restartPolicy")},
		"schema: startupPolicy":                 {"spec: {startupPolicy: invalid}", unsupported("spec.startupPolicy")},
		"schema: rolloutStrategy.type":          {"spec: {rolloutStrategy: {type: OnDelete}}", unsupported("spec.rolloutStrategy.type")},
		"schema: subGroupPolicyType":            {template("subGroupPolicy: {subGroupPolicyType: Leader, subGroupSize: 2}"), unsupported("spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType")},
		"schema: subdomainPolicy":               {"spec: {networkConfig: {subdomainPolicy: Own}}", unsupported("spec.networkConfig.subdomainPolicy")},
		"schema: two containers of one name":    {template("workerTemplate: {spec: {containers: [{name: a}, {name: a}]}}"), []string{"FieldValueDuplicate " + workers + ".spec.containers[1]"}},
		"schema: a claim without a key":         {template("volumeClaimTemplates: [{spec: {dataSource: {kind: A}}}]"), required("spec.leaderWorkerTemplate.volumeClaimTemplates[0].spec.dataSource.name")},
		"2: replicas -1":                        {"spec: {replicas: -1}", invalid("spec.replicas")},
		"2: replicas 0":                         {patch: "spec: {replicas: 0}"},
		"2: replicas 1000000":                   {patch: "spec: {replicas: 1000000}"},
		"2: replicas 1000001":                   {"spec: {replicas: 1000001}", invalid("spec.replicas")},
		"3: size 0":                             {template("size: 0"), invalid(sizePath)},
		"3: size -1":                            {template("size: -1"), invalid(sizePath)},
		"4: 100000 groups of 1000000":           {"spec: {replicas: 100000, leaderWorkerTemplate: {size: 1000000}}", invalid("spec.replicas")},
		"4: the highest product":                {patch: "spec: {replicas: 1, leaderWorkerTemplate: {size: 2147483647}}"},
		"4: one pod more":                       {"spec: {replicas: 2, leaderWorkerTemplate: {size: 1073741824}}", invalid("spec.replicas")},
		"5: maxUnavailable -1":                  {rolling("maxUnavailable: -1"), invalid(maxPath)},
		"5: maxUnavailable 101%":                {rolling("maxUnavailable: 101%"), invalid(maxPath)},
		"5: maxUnavailable is a number in text": {rolling(`maxUnavailable: "3"`), invalid(maxPath)},
		"5: maxUnavailable is a word":           {rolling("maxUnavailable: abc"), invalid(maxPath)},
		"5: maxUnavailable is huge":             {rolling("maxUnavailable: 99999999999999999999%"), invalid(maxPath)},
		"5: maxUnavailable above replicas":      {patch: rolling("maxUnavailable: 10")},
		"5: maxUnavailable 100%":                {patch: rolling("maxUnavailable: 100%")},
		"6: maxSurge -1":                        {rolling("maxSurge: -1"), invalid(surgePath)},
		"6: maxSurge 101%":                      {rolling("maxSurge: 101%"), invalid(surgePath)},
		"6: maxSurge is a word":                 {rolling("maxSurge: abc"), invalid(surgePath)},
		"6: maxSurge above replicas":            {patch: rolling("maxSurge: 10")},
		"7: partition -1":                       {rolling("partition: -1"), invalid("spec.rolloutStrategy.rollingUpdateConfiguration.partition")},
		"7: partition 0":                        {patch: rolling("partition: 0")},
		"7: partition of all groups":            {patch: rolling("partition: 4")},
		"7: partition above all groups":         {patch: rolling("partition: 5")},
		"8: both are 0":                         {rolling("maxUnavailable: 0, maxSurge: 0"), invalid(maxPath)},
		"8: both are 0 without groups":          {patch: "spec: {replicas: 0, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 0, maxSurge: 0}}}"},
		"8: only a surge":                       {patch: rolling("maxUnavailable: 0, maxSurge: 1")},
		"8: a percentage is rounded down":       {"spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 10%}}}", invalid(maxPath)},
		"8: a surge is rounded up":              {patch: "spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 0, maxSurge: 10%}}}"},
		"9: no subGroupSize":                    {template("subGroupPolicy: {}"), required(subSizePath)},
		"9: subGroupSize 0":                     {template("subGroupPolicy: {subGroupSize: 0}"), invalid(subSizePath)},
		"9: subGroupSize -1":                    {template("subGroupPolicy: {subGroupSize: -1}"), invalid(subSizePath)},
		"10: 4 by 3":                            {patch: template("subGroupPolicy: {subGroupSize: 3}")},
		"10: 7 by 3":                            {patch: template("size: 7, subGroupPolicy: {subGroupSize: 3}")},
		"10: 8 by 3":                            {template("size: 8, subGroupPolicy: {subGroupSize: 3}"), invalid(subSizePath)},
		"10 and 11: 4 by 5":                     {template("subGroupPolicy: {subGroupSize: 5}"), invalid(subSizePath, subSizePath)},
		"11: 1 by 2":                            {template("size: 1, subGroupPolicy: {subGroupSize: 2}"), invalid(subSizePath)},
		"12: 4 by 2 without the leader":         {template("subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded}"), invalid(subSizePath)},
		"12: 5 by 2 without the leader":         {patch: template("size: 5, subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded}")},
		"13: the annotation without the policy": {"metadata: {annotations: {" + annotation + ": rack}}", invalid("metadata.annotations." + annotation)},
		"13: an empty annotation":               {`metadata: {annotations: {` + annotation + `: ""}}`, invalid("metadata.annotations." + annotation)},
		"13: the annotation with the policy": {
			patch: "{metadata: {annotations: {" + annotation + ": rack}}, spec: {leaderWorkerTemplate: {subGroupPolicy: {subGroupSize: 2}}}}",
		},
		"not validated: values of pods":      {patch: template("workerTemplate: {spec: {containers: [{name: UPPER, image: ''}], restartPolicy: Never}}")},
		"not validated: retention policies":  {patch: template("persistentVolumeClaimRetentionPolicy: {whenDeleted: Sometimes}")},
		"not validated: our labels":          {patch: template("workerTemplate: {metadata: {labels: {leaderworkerset.sigs.k8s.io/name: other}}, spec: {containers: [{name: a}]}}")},
		"paused":                             {patch: "spec: {paused: true}"},
		"revisionHistoryLimit -1":            {"spec: {revisionHistoryLimit: -1}", invalid("spec.revisionHistoryLimit")},
		"revisionHistoryLimit 100":           {patch: "spec: {revisionHistoryLimit: 100}"},
		"revisionHistoryLimit 101":           {"spec: {revisionHistoryLimit: 101}", invalid("spec.revisionHistoryLimit")},
		"an empty backoff":                   {patch: "spec: {groupRestartBackoff: {}}"},
		"baseSeconds 0":                      {"spec: {groupRestartBackoff: {baseSeconds: 0}}", invalid("spec.groupRestartBackoff.baseSeconds")},
		"baseSeconds 3600":                   {patch: "spec: {groupRestartBackoff: {baseSeconds: 3600}}"},
		"baseSeconds 3601":                   {"spec: {groupRestartBackoff: {baseSeconds: 3601}}", invalid("spec.groupRestartBackoff.baseSeconds")},
		"maxSeconds below baseSeconds":       {"spec: {groupRestartBackoff: {baseSeconds: 20, maxSeconds: 19}}", invalid("spec.groupRestartBackoff.maxSeconds")},
		"maxSeconds 86401":                   {"spec: {groupRestartBackoff: {maxSeconds: 86401}}", invalid("spec.groupRestartBackoff.maxSeconds")},
		"maxGroupRestarts 0":                 {patch: template("maxGroupRestarts: 0")},
		"maxGroupRestarts -1":                {template("maxGroupRestarts: -1"), invalid("spec.leaderWorkerTemplate.maxGroupRestarts")},
		"maxGroupRestarts with the policy":   {patch: template("maxGroupRestarts: 3, restartPolicy: RecreateGroupAfterStart")},
		"maxGroupRestarts without effect":    {template("maxGroupRestarts: 3, restartPolicy: None"), []string{"FieldValueForbidden spec.leaderWorkerTemplate.maxGroupRestarts"}},
		"several errors at once":             {"spec: {replicas: -1, startupPolicy: x, leaderWorkerTemplate: {size: 0}}", append(invalid("spec.replicas", sizePath), unsupported("spec.startupPolicy")...)},
		"sums of negative numbers are small": {"spec: {replicas: -1000000, leaderWorkerTemplate: {size: -2147483648}}", invalid("spec.replicas", sizePath, "spec.replicas")},
	} {
		t.Run(name, func(t *testing.T) { checkBoth(t, tc.patch, tc.want) })
	}
}

// TestNames has the names of upstream's matrix, and the lengths from which pods could not be created.
func TestNames(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, tc := range map[string]struct {
		name, patch string
		want        []string
	}{
		"it begins with a digit":                 {name: "1-sample", want: invalid("metadata.name")},
		"it has capitals":                        {name: "UPPER", want: invalid("metadata.name")},
		"64 characters":                          {name: long(64), want: invalid("metadata.name")},
		"a dot":                                  {name: "a.b", want: invalid("metadata.name")},
		"51 characters":                          {name: long(51)},
		"52 characters":                          {name: long(52), want: invalid("metadata.name")},
		"50 characters and 100 groups":           {name: long(50), patch: "spec: {replicas: 100}"},
		"51 characters and 10 groups":            {name: long(51), patch: "spec: {replicas: 10}"},
		"51 characters and 11 groups":            {name: long(51), patch: "spec: {replicas: 11}", want: invalid("metadata.name")},
		"51 characters and a surge beyond 10":    {name: long(51), patch: "spec: {replicas: 10, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 1}}}", want: invalid("metadata.name")},
		"a surge is at most as many as replicas": {name: long(51), patch: "spec: {replicas: 5, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 100}}}"},
		"a surge of a percentage":                {name: long(51), patch: "spec: {replicas: 10, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 1%}}}", want: invalid("metadata.name")},
		"one pod in a group: 52 characters":      {name: long(52), patch: "spec: {replicas: 1000, leaderWorkerTemplate: {size: 1}}"},
		"one pod in a group: 53 characters":      {name: long(53), patch: template("size: 1")},
		"one pod in a group: 54 characters":      {name: long(54), patch: template("size: 1"), want: invalid("metadata.name")},
		"no groups":                              {name: long(51), patch: "spec: {replicas: 0}"},
	} {
		t.Run(name, func(t *testing.T) {
			set := merged(t, tc.patch)
			set.Name = tc.name
			if diff := cmp.Diff(tc.want, kinds(validation.ValidateLeaderWorkerSetCreate(set))); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if errs := validation.ValidateLeaderWorkerSetUpdate(set, set.DeepCopy()); len(errs) > 0 {
				t.Errorf("an update of a set that exists is refused: %v", errs)
			}
		})
	}
	set := merged(t, "spec: {replicas: 12}")
	set.Name = long(53)
	const want = "must have at most 50 characters; it has 53. Pods carry it in the label controller-revision-hash, together with the index of the group and a hash"
	if errs := validation.ValidateLeaderWorkerSetCreate(set); len(errs) != 1 || !strings.Contains(errs[0].Detail, want) {
		t.Errorf("got %v, want %s", errs, want)
	}
	set.Name, set.GenerateName = "a-12345", "1ab-"
	if diff := cmp.Diff(invalid("metadata.generateName"), kinds(validation.ValidateLeaderWorkerSetCreate(set))); diff != "" {
		t.Errorf("a prefix with a digit (-want +got):\n%s", diff)
	}
}
