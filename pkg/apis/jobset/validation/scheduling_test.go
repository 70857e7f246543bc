// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

const (
	instead   = "must not be set together with job: set it in job"
	inEntries = "must not be set together with replicatedJobs: set it in each of their items"
	topology  = "must be the key of a label of nodes, for example topology.kubernetes.io/rack"
	ownGroup  = "must not be set together with spec.scheduling of the JobSet, which groups the pods"
)

var scheduled = gates.Gates{JobSetWorkloadAwareSchedulingAPI: true}

// gangOf is a policy with so many pods; 0 for all.
func gangOf(minCount int32) *jobset.SchedulingPolicy {
	gang := &jobset.GangSchedulingPolicy{}
	if minCount != 0 {
		gang.MinCount = ptr.To(minCount)
	}
	return &jobset.SchedulingPolicy{Gang: gang}
}

func basicPolicy() *jobset.SchedulingPolicy {
	return &jobset.SchedulingPolicy{Basic: &jobset.BasicSchedulingPolicy{}}
}

func entry(targets ...string) jobset.ReplicatedJobScheduling {
	return jobset.ReplicatedJobScheduling{TargetReplicatedJobs: targets}
}

// entries groups replicatedJobs, after other changes of the set.
func entries(list ...jobset.ReplicatedJobScheduling) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.Scheduling = &jobset.JobSetSchedulingConfiguration{ReplicatedJobs: list}
	}
}

// wholeSet schedules a set as one group.
func wholeSet(policy *jobset.SchedulingPolicy, change ...func(*jobset.JobSet)) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.Scheduling = &jobset.JobSetSchedulingConfiguration{SchedulingPolicy: policy}
		for _, f := range change {
			f(js)
		}
	}
}

func inOrder(js *jobset.JobSet) { js.Spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder }

func workersDepend(js *jobset.JobSet) {
	js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "launcher", Status: jobset.DependencyReady}}
}

func TestSchedulingOfGroups(t *testing.T) {
	gate := "must not be set while the feature gate JobSetWorkloadAwareSchedulingAPI of the API server is off"
	runRules(t, map[string]ruleCase{
		"8.4 a gang, gate off":              {change: wholeSet(gangOf(0)), want: only("spec.scheduling", forbidden, gate)},
		"8.4 an empty scheduling, gate off": {change: wholeSet(nil), want: only("spec.scheduling", forbidden, gate)},
		"8.4 an empty scheduling":           {change: wholeSet(nil), opts: scheduled},
		"8.4 basic":                         {change: wholeSet(basicPolicy()), opts: scheduled},
		"8.4 a gang of all pods":            {change: wholeSet(gangOf(9)), opts: scheduled},
		"8.4 no replicatedJobs": {
			change: wholeSet(nil, func(js *jobset.JobSet) { js.Spec.ReplicatedJobs = nil }), opts: scheduled,
			want: only("spec.scheduling", invalid, "must not be set without replicatedJobs, which have the pods to schedule"),
		},
		"8.4 no policy in the policy": {
			change: wholeSet(&jobset.SchedulingPolicy{}), opts: scheduled,
			want: only("spec.scheduling.schedulingPolicy", required, "must have one of basic and gang, for example gang: {}"),
		},
		"8.4 two policies": {
			change: wholeSet(&jobset.SchedulingPolicy{Basic: &jobset.BasicSchedulingPolicy{}, Gang: &jobset.GangSchedulingPolicy{}}), opts: scheduled,
			want: only("spec.scheduling.schedulingPolicy", invalid, "must have only one of basic and gang"),
		},
		"8.4 a gang of a negative number": {
			change: wholeSet(gangOf(-1)), opts: scheduled,
			want: only("spec.scheduling.schedulingPolicy.gang.minCount", invalid, "must be 1 or more; leave it out for all pods of the group"),
		},
		"8.4 more pods than there are": {
			change: wholeSet(gangOf(10)), opts: scheduled,
			want: only("spec.scheduling.schedulingPolicy.gang.minCount", invalid, "must be at most 9, the number of pods of the group that run at the same time"),
		},
		"own: more pods than run at the same time": {
			change: wholeSet(gangOf(9), onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Spec.Completions = ptr.To[int32](3) })), opts: scheduled,
			want: only("spec.scheduling.schedulingPolicy.gang.minCount", invalid, "must be at most 7, the number of pods of the group that run at the same time"),
		},
		"8.4 a disruption mode of nothing": {
			change: wholeSet(nil, func(js *jobset.JobSet) { js.Spec.Scheduling.DisruptionMode = &jobset.DisruptionMode{} }), opts: scheduled,
			want: only("spec.scheduling.disruptionMode", required, "must have one of single and all, for example all: {}"),
		},
		"8.4 two disruption modes": {
			change: wholeSet(nil, func(js *jobset.JobSet) {
				js.Spec.Scheduling.DisruptionMode = &jobset.DisruptionMode{Single: &jobset.SingleDisruptionMode{}, All: &jobset.AllDisruptionMode{}}
			}), opts: scheduled,
			want: only("spec.scheduling.disruptionMode", invalid, "must have only one of single and all"),
		},
		"8.4 a topology without a key": {change: wholeSet(nil, within("")), opts: scheduled, want: only("spec.scheduling.schedulingConstraints.topology[0].key", required, topology)},
		"8.4 a topology of a bad key":  {change: wholeSet(nil, within("a b")), opts: scheduled, want: only("spec.scheduling.schedulingConstraints.topology[0].key", invalid, topology)},
		"8.4 two topologies":           {change: wholeSet(nil, within("rack", "block")), opts: scheduled, want: only("spec.scheduling.schedulingConstraints.topology", tooMany, "must have at most 1 item")},
		"8.4 one topology":             {change: wholeSet(nil, within("topology.kubernetes.io/rack")), opts: scheduled},
	})
}

// within limits the pods of a set to a domain.
func within(keys ...string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.Scheduling.SchedulingConstraints = &jobset.SchedulingConstraints{}
		for _, key := range keys {
			js.Spec.Scheduling.SchedulingConstraints.Topology = append(js.Spec.Scheduling.SchedulingConstraints.Topology, jobset.TopologyConstraint{Key: key})
		}
	}
}

func TestSchedulingOfTemplates(t *testing.T) {
	high := func(class string) func(*jobset.JobSet) {
		return onPod(func(p *corev1.PodTemplateSpec) { p.Spec.PriorityClassName = class })
	}
	priority := only("spec.replicatedJobs[1].template.spec.template.spec.priorityClassName", invalid,
		`must be "", as in replicatedJob "launcher", because spec.scheduling puts the pods of both into one group`)
	runRules(t, map[string]ruleCase{
		"8.4 pods that name a group": {
			change: wholeSet(nil, onPod(func(p *corev1.PodTemplateSpec) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} })), opts: scheduled,
			want: only("spec.replicatedJobs[1].template.spec.template.spec.schedulingGroup", forbidden, ownGroup),
		},
		"own: Jobs that make groups": {
			change: wholeSet(nil, onJob(func(rj *jobset.ReplicatedJob) { rj.Template.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{} })), opts: scheduled,
			want: only("spec.replicatedJobs[1].template.spec.scheduling", forbidden, ownGroup),
		},
		"8.4 two priorities in a group":          {change: wholeSet(nil, high("high")), opts: scheduled, want: priority},
		"8.4 two priorities in an entry":         {change: and(high("high"), entries(entry("workers", "launcher"))), opts: scheduled, want: priority},
		"8.4 two priorities in two entries pass": {change: and(high("high"), entries(entry("workers"), entry("launcher"))), opts: scheduled},
		"8.4 two priorities, one after another":  {change: and(high("high"), inOrder, wholeSet(nil)), opts: scheduled},
		"8.4 groups of equal names": {
			change: and(func(js *jobset.JobSet) {
				js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, *js.Spec.ReplicatedJobs[1].DeepCopy())
				js.Spec.ReplicatedJobs[2].Name = "launcher-workers"
			}, entries(entry("launcher", "workers"), entry("launcher-workers"))), opts: scheduled,
			want: only("spec.scheduling", invalid, `must not result in two groups of one name, "launcher-workers-9820341ee6": rename a replicatedJob, or shorten metadata.name`),
		},
		"8.4 nine groups": {
			change: and(func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[1].Replicas = ptr.To[int32](8) },
				entries(entry("launcher"), perJob(nil, "workers"))), opts: scheduled,
			want: only("spec.scheduling", invalid, "must not result in more than 8 groups, which is the limit of a Workload; it results in 9"),
		},
		"8.4 one group for each Job": {change: entries(entry("launcher"), perJob(gangOf(4), "workers")), opts: scheduled},
	})
}

func and(changes ...func(*jobset.JobSet)) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		for _, change := range changes {
			change(js)
		}
	}
}

func perJob(policy *jobset.SchedulingPolicy, targets ...string) jobset.ReplicatedJobScheduling {
	e := entry(targets...)
	e.Job = &jobset.JobScheduling{SchedulingPolicy: policy}
	return e
}

func TestSchedulingOfSequences(t *testing.T) {
	staged := "must not be set while replicatedJobs start one after another, each as a gang of its own: leave it out, or add items to spec.scheduling.replicatedJobs"
	deadlock := "must not be a gang of replicatedJobs that start one after another, because a gang starts only once all of its pods exist: add an item for each of them"
	joined := entry("launcher", "workers")
	basic := joined
	basic.SchedulingPolicy = basicPolicy()
	runRules(t, map[string]ruleCase{
		"8.4 a number of pods, InOrder":         {change: and(inOrder, wholeSet(gangOf(1))), opts: scheduled, want: only("spec.scheduling.schedulingPolicy.gang.minCount", forbidden, staged)},
		"8.4 a number of pods, dependsOn":       {change: and(workersDepend, wholeSet(gangOf(1))), opts: scheduled, want: only("spec.scheduling.schedulingPolicy.gang.minCount", forbidden, staged)},
		"8.4 a gang without a number, InOrder":  {change: and(inOrder, wholeSet(gangOf(0))), opts: scheduled},
		"8.4 a number in an entry, InOrder":     {change: and(inOrder, entries(entry("launcher"), perJob(gangOf(4), "workers"))), opts: scheduled},
		"own: a gang that waits for itself":     {change: and(inOrder, entries(joined)), opts: scheduled, want: only("spec.scheduling.replicatedJobs[0]", invalid, deadlock)},
		"own: a gang that depends on itself":    {change: and(workersDepend, entries(joined)), opts: scheduled, want: only("spec.scheduling.replicatedJobs[0]", invalid, deadlock)},
		"own: a group that waits passes, basic": {change: and(inOrder, entries(basic)), opts: scheduled},
	})
}

func TestSchedulingOfEntries(t *testing.T) {
	at := "spec.scheduling.replicatedJobs"
	runRules(t, map[string]ruleCase{
		"8.4 a policy beside entries": {
			change: and(entries(entry("launcher", "workers")), func(js *jobset.JobSet) {
				js.Spec.Scheduling.SchedulingPolicy, js.Spec.Scheduling.DisruptionMode = gangOf(0), &jobset.DisruptionMode{All: &jobset.AllDisruptionMode{}}
			}, within("rack")), opts: scheduled,
			want: []refusal{
				{"spec.scheduling.schedulingPolicy", forbidden, inEntries}, {"spec.scheduling.schedulingConstraints", forbidden, inEntries},
				{"spec.scheduling.disruptionMode", forbidden, inEntries},
			},
		},
		"8.4 no targets":            {change: entries(entry()), opts: scheduled, want: only(at+"[0].targetReplicatedJobs", required, "must have the names of 1 to 50 replicatedJobs")},
		"8.4 a target that is long": {change: entries(entry(strings.Repeat("a", 257))), opts: scheduled, want: only(at+"[0].targetReplicatedJobs[0]", tooLong, "may not be more than 256 characters")},
		"8.4 an unknown target":     {change: entries(entry("launcher", "lost")), opts: scheduled, want: only(at+"[0].targetReplicatedJobs[1]", invalid, target)},
		"8.4 a target twice":        {change: entries(entry("launcher", "launcher"), entry("workers")), opts: scheduled, want: only(at+"[0].targetReplicatedJobs[1]", duplicate, unique)},
		"8.4 a target of two":       {change: entries(entry("launcher", "workers"), entry("workers")), opts: scheduled, want: only(at+"[1].targetReplicatedJobs[0]", invalid, "must be a target once: it is one of spec.scheduling.replicatedJobs[0] too")},
		"8.4 a missing target":      {change: entries(entry("launcher")), opts: scheduled, want: only(at, invalid, `must have each replicatedJob as a target; 1 are missing, the first one is "workers"`)},
		"8.4 51 entries":            {change: entries(make([]jobset.ReplicatedJobScheduling, 51)...), opts: scheduled, want: only(at, tooMany, "must have at most 50 items")},
		"8.4 51 targets":            {change: entries(entry(make([]string, 51)...)), opts: scheduled, want: only(at+"[0].targetReplicatedJobs", tooMany, "must have at most 50 items")},
		"8.4 a number in an entry": {
			change: entries(entry("launcher"), perJob(gangOf(5), "workers")), opts: scheduled,
			want: only(at+"[1].job.schedulingPolicy.gang.minCount", invalid, "must be at most 4, the number of pods of the group that run at the same time"),
		},
		"8.4 a job of two replicatedJobs": {
			change: entries(perJob(nil, "launcher", "workers")), opts: scheduled,
			want: only(at+"[0].targetReplicatedJobs", invalid, "must have exactly one item, because job is set: add an item to spec.scheduling.replicatedJobs for each"),
		},
		"8.4 fields beside job": {
			change: and(entries(entry("launcher"), perJob(nil, "workers")), func(js *jobset.JobSet) {
				e := &js.Spec.Scheduling.ReplicatedJobs[1]
				e.SchedulingPolicy, e.SchedulingConstraints = gangOf(0), &jobset.SchedulingConstraints{}
				e.DisruptionMode = &jobset.DisruptionMode{All: &jobset.AllDisruptionMode{}}
				e.ResourceClaims = []jobset.SchedulingResourceClaim{{Name: "nic", ResourceClaimName: ptr.To("nic")}}
			}), opts: scheduled,
			want: []refusal{
				{at + "[1].schedulingPolicy", forbidden, instead}, {at + "[1].schedulingConstraints", forbidden, instead},
				{at + "[1].disruptionMode", forbidden, instead}, {at + "[1].resourceClaims", forbidden, instead},
			},
		},
	})
}

func TestSchedulingOfClaims(t *testing.T) {
	at := "spec.scheduling.replicatedJobs[0].resourceClaims"
	names := "resourceClaimName and resourceClaimTemplateName"
	claims := func(list ...jobset.SchedulingResourceClaim) func(*jobset.JobSet) {
		e := entry("launcher", "workers")
		e.ResourceClaims = list
		return entries(e)
	}
	nic := jobset.SchedulingResourceClaim{Name: "nic", ResourceClaimName: ptr.To("nic")}
	runRules(t, map[string]ruleCase{
		"8.4 a claim":            {change: claims(nic), opts: scheduled},
		"8.4 five claims":        {change: claims(nic, nic, nic, nic, nic), opts: scheduled, want: only(at, tooMany, "must have at most 4 items")},
		"8.4 two of one name":    {change: claims(nic, nic), opts: scheduled, want: only(at+"[1]", duplicate, unique)},
		"8.4 a claim of no name": {change: claims(jobset.SchedulingResourceClaim{ResourceClaimName: ptr.To("nic")}), opts: scheduled, want: only(at+"[0].name", required, "must be set: it identifies the claim in the group")},
		"8.4 a claim of nothing": {change: claims(jobset.SchedulingResourceClaim{Name: "nic"}), opts: scheduled, want: only(at+"[0]", required, "must have one of "+names)},
		"8.4 a claim of a bad name": {
			change: claims(jobset.SchedulingResourceClaim{Name: "n.c", ResourceClaimName: ptr.To("nic")}), opts: scheduled,
			want: only(at+"[0].name", invalid, "must have at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"),
		},
		"8.4 a claim of two": {
			change: claims(jobset.SchedulingResourceClaim{Name: "nic", ResourceClaimName: ptr.To("nic"), ResourceClaimTemplateName: ptr.To("nic")}), opts: scheduled,
			want: only(at+"[0]", invalid, "must have only one of "+names),
		},
		"8.4 a template of a bad name": {
			change: claims(jobset.SchedulingResourceClaim{Name: "nic", ResourceClaimTemplateName: ptr.To("")}), opts: scheduled,
			want: only(at+"[0].resourceClaimTemplateName", invalid, dns1123),
		},
	})
}
