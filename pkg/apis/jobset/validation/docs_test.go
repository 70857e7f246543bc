// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{
		"`spec.replicatedJobs`":                               validation.MaxReplicatedJobs,
		"`rj[i].dependsOn`":                                   validation.MaxDependencies,
		"Jobs of a set: the sum of R":                         validation.MaxJobs,
		"Pods of a set: the sum of R × P":                     validation.MaxPods,
		"`spec.successPolicy.targetReplicatedJobs`":           validation.MaxTargets,
		"`spec.failurePolicy.rules`":                          validation.MaxRules,
		"`rules[j].targetReplicatedJobs`":                     validation.MaxTargets,
		"`rules[j].onJobFailureReasons`":                      validation.MaxReasons,
		"`onJobFailureMessagePatterns` of all rules together": validation.MaxPatterns,
		"Bytes of one pattern":                                validation.MaxPatternLength,
		"`spec.volumeClaimPolicies`":                          validation.MaxVolumeClaimPolicies,
		"`vcp[i].templates`":                                  validation.MaxVolumeClaimTemplates,
		"`spec.scheduling.replicatedJobs`":                    validation.MaxSchedulingEntries,
		"`sg[i].targetReplicatedJobs`":                        validation.MaxSchedulingTargets,
		"`sg[i].resourceClaims`, `sg[i].job.resourceClaims`":  validation.MaxSchedulingClaims,
		"`schedulingConstraints.topology`":                    validation.MaxTopologies,
		"Groups of pods that result from `spec.scheduling`":   podgroups.MaxGroups,
		"`status.conditions`":                                 generic.MaxConditions,
		"Any other list of objects in the spec, such as the variables, ports or mounts of a container, the containers or the volumes of a pod": generic.MaxItems,
		"`metadata.ownerReferences`": generic.MaxItems,
		"States of the compiled patterns of all rules together, about one for each character; a repeated part counts as often as it can repeat": validation.MaxPatternStates,
		"Objects in all lists of the spec together: replicatedJobs, containers, variables, ports, volumes and so on":                            validation.MaxObjects,
	}
	for what, limit := range rows {
		if row := fmt.Sprintf("| %s | %d |\n", what, limit); !strings.Contains(string(page), row) {
			t.Errorf("docs/validation.md lacks the row %q", row)
		}
	}
}
