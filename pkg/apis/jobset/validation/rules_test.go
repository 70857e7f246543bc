// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	dns1123 = "must consist of lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	dns1035 = "must consist of lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit"
	service = ", because it is the name of a Service"
	named   = ", because Jobs and pods are named after it"
	target  = "must be the name of a replicatedJob of this JobSet: launcher, workers"
)

var allGates = gates.Gates{JobSetWorkloadAwareSchedulingAPI: true, InPlaceRestart: true, RestartJob: true, ElasticJobSet: true, MutablePodResourcesForSuspendedJobSets: true}

type ruleCase struct {
	change func(*jobset.JobSet)
	opts   gates.Gates
	want   []refusal
}

func runRules(t *testing.T, cases map[string]ruleCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := train(tc.change)
			if diff := cmp.Diff(tc.want, refusals(validation.ValidateJobSetCreate(js, tc.opts))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// namedSet is a set of one replicatedJob "w" whose name has so many characters.
func namedSet(length int, replicas, pods int32) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		*js = *builders.Hub(strings.Repeat("a", length), builders.WithHubJobs("w", replicas, pods))
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 64)
	runRules(t, map[string]ruleCase{
		"3.3 a set whose name is no subdomain": {
			change: func(js *jobset.JobSet) { js.Name = "Train" },
			want:   only("metadata.name", invalid, dns1035),
		},
		"3.4-3a 3.4-3b a subdomain in capitals": {
			change: func(js *jobset.JobSet) { js.Spec.Network.Subdomain = "Mesh" },
			want:   only("spec.network.subdomain", invalid, dns1035+service),
		},
		"3.4-3b a subdomain with a dot": {
			change: func(js *jobset.JobSet) { js.Spec.Network.Subdomain = "a.b" },
			want:   only("spec.network.subdomain", invalid, dns1035+service),
		},
		"3.4-3b a subdomain of 64 characters": {
			change: func(js *jobset.JobSet) { js.Spec.Network.Subdomain = long },
			want:   only("spec.network.subdomain", invalid, "must have at most 63 characters"+service+"; it has 64"),
		},
		"3.4-5b a groupName that is no label": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].GroupName = ptr.To("Group") },
			want:   only("spec.replicatedJobs[1].groupName", invalid, dns1035),
		},
		"3.4-5b an explicitly empty groupName": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].GroupName = ptr.To("") },
			want:   only("spec.replicatedJobs[1].groupName", invalid, dns1035),
		},
		"3.4-5b a groupName of 64 characters": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].GroupName = ptr.To(long) },
			want:   only("spec.replicatedJobs[1].groupName", invalid, "must have at most 63 characters; it has 64"),
		},
		"3.4-5c a name that begins with a digit": {
			change: func(js *jobset.JobSet) { js.Name = "0train" },
			want:   only("metadata.name", invalid, dns1035+named),
		},
		"own a generated name": {
			change: func(js *jobset.JobSet) { js.GenerateName, js.Name = "train-", "train-x1" },
		},
		"own a name with a dot": {
			change: func(js *jobset.JobSet) { js.Name = "my.train" },
			want:   only("metadata.name", invalid, dns1035+named),
		},
		"own a name with a dot of a set without replicatedJobs": {
			change: func(js *jobset.JobSet) { js.Name, js.Spec.ReplicatedJobs = "my.train", nil },
		},
		"3.4-5c a replicatedJob in capitals": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Name = "Workers" },
			want:   only("spec.replicatedJobs[1].name", invalid, "must consist of lower-case letters, digits and '-'"+named),
		},
		"3.4-5c a Job name of 64 characters": {
			change: func(js *jobset.JobSet) {
				namedSet(60, 1, 1)(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.Completions = nil
			},
			want: only("metadata.name", invalid, tooLongName("Jobs", 59, strings.Repeat("a", 60)+"-w-0")),
		},
		"3.4-5c the digits of the last index count": {
			change: func(js *jobset.JobSet) {
				namedSet(58, 101, 1)(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
			},
			want: only("metadata.name", invalid, tooLongName("Jobs", 57, strings.Repeat("a", 58)+"-w-100")),
		},
		"3.4-5c a Job name of 63 characters passes": {
			change: func(js *jobset.JobSet) {
				namedSet(59, 1, 1)(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.Completions = nil
			},
		},
		"3.4-5d a pod name of 64 characters": {
			change: namedSet(52, 1, 1),
			want:   only("metadata.name", invalid, tooLongName("pods", 51, strings.Repeat("a", 52)+"-w-0-0-xxxxx")),
		},
		"own a replicatedJob that is too long for a short set": {
			change: func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Name = strings.Repeat("w", 50) },
			want: only("spec.replicatedJobs[1].name", invalid,
				tooLongName("pods", 47, "train-"+strings.Repeat("w", 50)+"-1-3-xxxxx")+"; or shorten metadata.name"),
		},
		"own the name of the set is blamed once": {
			change: func(js *jobset.JobSet) { js.Name = strings.Repeat("a", 60) },
			want:   only("metadata.name", invalid, tooLongName("pods", 44, strings.Repeat("a", 60)+"-launcher-0-0-xxxxx")),
		},
		"3.4-5d a pod name of 63 characters passes": {change: namedSet(51, 1, 10)},
		"3.4-5d without completions pod names are not known": {
			change: func(js *jobset.JobSet) {
				namedSet(52, 1, 1)(js)
				js.Spec.ReplicatedJobs[0].Template.Spec.Completions = nil
			},
		},
		"3.4-5d no replicas are no longer a name than one": {change: namedSet(51, 0, 1)},
	})
}

func tooLongName(what string, limit int, name string) string {
	return fmt.Sprintf("must have at most %d characters, because names of %s have at most 63: %q would have %d", limit, what, name, len(name))
}

func TestManagedBy(t *testing.T) {
	set := func(name string) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) { js.Spec.ManagedBy = &name }
	}
	runRules(t, map[string]ruleCase{
		"3.4-4a empty": {
			change: set(""),
			want:   only("spec.managedBy", required, "must not be empty: leave it out for the built-in controller"),
		},
		"3.4-4b no path": {
			change: set("acme.io"),
			want:   only("spec.managedBy", invalid, "must be a DNS name and a path, such as example.com/controller"),
		},
		"3.4-4b no domain": {
			change: set("Acme/foo"),
			want:   only("spec.managedBy", invalid, "must be a DNS name and a path, such as example.com/controller"),
		},
		"3.4-4c 64 characters": {
			change: set("acme.io/" + strings.Repeat("a", 56)),
			want:   only("spec.managedBy", tooLong, "may not be more than 63 bytes"),
		},
		"3.4-4c 63 characters pass": {change: set("acme.io/" + strings.Repeat("a", 55))},
	})
}

func TestStartup(t *testing.T) {
	dependsOn := func(job int, names ...string) func(*jobset.JobSet) {
		return func(js *jobset.JobSet) {
			js.Spec.ReplicatedJobs[job].DependsOn = []jobset.DependsOn{}
			for _, name := range names {
				js.Spec.ReplicatedJobs[job].DependsOn = append(js.Spec.ReplicatedJobs[job].DependsOn, jobset.DependsOn{Name: name, Status: jobset.DependencyReady})
			}
		}
	}
	const first = "must not be set on the first replicatedJob, even empty: a replicatedJob can depend only on earlier ones"
	runRules(t, map[string]ruleCase{
		"3.4-2 an empty dependsOn on the first replicatedJob": {
			change: dependsOn(0),
			want:   only("spec.replicatedJobs[0].dependsOn", forbidden, first),
		},
		"3.4-2 3.4-5e the first replicatedJob depends on the second": {
			change: dependsOn(0, "workers"),
			want: []refusal{
				{"spec.replicatedJobs[0].dependsOn", forbidden, first},
				{"spec.replicatedJobs[0].dependsOn[0].name", invalid, `must be the name of a replicatedJob that is listed before "launcher"`},
			},
		},
		"3.4-5e a dependency on nobody": {
			change: dependsOn(1, "launcher", "nobody"),
			want:   only("spec.replicatedJobs[1].dependsOn[1].name", invalid, `must be the name of a replicatedJob that is listed before "workers"`),
		},
		"own a dependency on itself": {
			change: dependsOn(1, "workers"),
			want:   only("spec.replicatedJobs[1].dependsOn[0].name", invalid, "must not be the replicatedJob itself, which would never start: set it to an earlier one"),
		},
		"3.4-5e a dependency on an earlier one passes": {change: dependsOn(1, "launcher")},
	})
}

func TestSizes(t *testing.T) {
	runRules(t, map[string]ruleCase{
		"3.4-5a more pods than 32 bits count": {
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](65536)
				js.Spec.ReplicatedJobs[1].Template.Spec.Parallelism = ptr.To[int32](32768)
			},
			want: only("spec.replicatedJobs[1].replicas", invalid,
				`must not result in more than 2147483647 pods: replicatedJob "workers" has 65536 replicas times parallelism 32768`),
		},
		"3.4-5a parallelism counts as 1 when absent": {
			change: func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](99_999)
				js.Spec.ReplicatedJobs[1].Template.Spec.Parallelism = nil
			},
		},
	})
}

func TestSuccessPolicy(t *testing.T) {
	runRules(t, map[string]ruleCase{
		"3.4-6 an unknown target": {
			change: func(js *jobset.JobSet) {
				js.Spec.SuccessPolicy.TargetReplicatedJobs = []string{"workers", "nobody"}
			},
			want: only("spec.successPolicy.targetReplicatedJobs[1]", invalid, target),
		},
	})
}

func TestActiveDeadline(t *testing.T) {
	const atLeastOne = "must be 1 or more; leave it out for no limit"
	runRules(t, map[string]ruleCase{
		"8.4 no time at all":    {change: deadline(ptr.To[int64](0)), want: only("spec.activeDeadlineSeconds", invalid, atLeastOne)},
		"8.4 a negative time":   {change: deadline(ptr.To[int64](-1)), want: only("spec.activeDeadlineSeconds", invalid, atLeastOne)},
		"8.4 one second passes": {change: deadline(ptr.To[int64](1))},
		"8.4 three years pass":  {change: deadline(ptr.To[int64](3 * 365 * 24 * 3600))},
	})
}
