// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

// JobSetSchedulingConfiguration says how the pods of a set are grouped for the scheduler of the cluster.
type JobSetSchedulingConfiguration struct {
	// schedulingPolicy says whether the pods of the set are scheduled one by one (basic) or together (gang). Defaults to gang, without
	// minCount, when the set is created, unless replicatedJobs is set or the replicatedJobs start one after another; without a policy those
	// are scheduled as one gang for each replicatedJob. Must not be set together with replicatedJobs.
	SchedulingPolicy *SchedulingPolicy

	// schedulingConstraints limits where the pods of a group can run. Absent means anywhere. Must not be set together with replicatedJobs.
	SchedulingConstraints *SchedulingConstraints

	// disruptionMode says whether the scheduler may preempt single pods of a group. Absent leaves it to the cluster, whose default is single.
	// Must not be set together with replicatedJobs.
	DisruptionMode *DisruptionMode

	// replicatedJobs groups the replicatedJobs of the set: each of them must be a target of exactly one entry. At most 50.
	ReplicatedJobs []ReplicatedJobScheduling
}

// ReplicatedJobScheduling is how the pods of some replicatedJobs are scheduled: as one group, or with job as one group for each Job.
type ReplicatedJobScheduling struct {
	// targetReplicatedJobs are the names of the replicatedJobs, 1 to 50, each of at most 256 characters. Exactly one if job is set.
	TargetReplicatedJobs []string

	// schedulingPolicy says whether the pods are scheduled one by one (basic) or together (gang). Absent means gang, without minCount. Must
	// not be set together with job.
	SchedulingPolicy *SchedulingPolicy

	// schedulingConstraints limits where the pods of the group can run. Absent means anywhere. Must not be set together with job.
	SchedulingConstraints *SchedulingConstraints

	// disruptionMode says whether the scheduler may preempt single pods of the group. Absent leaves it to the cluster, whose default is
	// single. Must not be set together with job.
	DisruptionMode *DisruptionMode

	// resourceClaims are devices that the pods of the group share. At most 4. Must not be set together with job.
	ResourceClaims []SchedulingResourceClaim

	// job makes each Job of the replicatedJob a group of its own.
	Job *JobScheduling
}

// JobScheduling is how the pods of each Job of a replicatedJob are scheduled.
type JobScheduling struct {
	// schedulingPolicy says whether the pods of a Job are scheduled one by one (basic) or together (gang). Absent means
	// gang, without minCount.
	SchedulingPolicy *SchedulingPolicy

	// schedulingConstraints limits where the pods of a Job can run. Absent means anywhere.
	SchedulingConstraints *SchedulingConstraints

	// disruptionMode says whether the scheduler may preempt single pods of a Job. Absent leaves it to the cluster, whose default is single.
	DisruptionMode *DisruptionMode

	// resourceClaims are devices that the pods of a Job share. At most 4.
	ResourceClaims []SchedulingResourceClaim
}

// SchedulingPolicy says whether the pods of a group are scheduled one by one or together. Exactly one field must be set.
type SchedulingPolicy struct {
	// basic schedules the pods one by one.
	Basic *BasicSchedulingPolicy

	// gang schedules the pods together: none of them gets a node before there is room for minCount of them.
	Gang *GangSchedulingPolicy
}

// BasicSchedulingPolicy schedules pods one by one. It has no settings.
type BasicSchedulingPolicy struct{}

// GangSchedulingPolicy schedules pods together.
type GangSchedulingPolicy struct {
	// minCount is the number of pods, 1 or more, that must fit into the cluster at the same time, and at most the number of pods in the group.
	// Absent means all of them. Must not be set in the policy of a whole set whose replicatedJobs start one after another.
	MinCount *int32
}

// SchedulingConstraints limits where the pods of a group can run.
type SchedulingConstraints struct {
	// topology names the domain that all pods of the group must share. At most 1 item.
	Topology []TopologyConstraint
}

// TopologyConstraint names a kind of topology domain.
type TopologyConstraint struct {
	// key is the label of nodes whose value is the domain, for example topology.kubernetes.io/rack.
	Key string
}

// DisruptionMode says whether single pods of a group can be preempted. Exactly one field must be set.
type DisruptionMode struct {
	// single lets the scheduler preempt some pods of the group and leave the others.
	Single *SingleDisruptionMode

	// all lets the scheduler preempt only all pods of the group together.
	All *AllDisruptionMode
}

// SingleDisruptionMode lets single pods of a group be preempted. It has no settings.
type SingleDisruptionMode struct{}

// AllDisruptionMode lets only whole groups be preempted. It has no settings.
type AllDisruptionMode struct{}

// SchedulingResourceClaim is a claim on devices that the pods of a group share. Exactly one of resourceClaimName and
// resourceClaimTemplateName must be set. Pods use it by an entry of their resourceClaims that is the same.
type SchedulingResourceClaim struct {
	// name identifies the claim in the group. Must be a DNS-1123 label.
	Name string

	// resourceClaimName is the name of a ResourceClaim in the namespace of the set.
	ResourceClaimName *string

	// resourceClaimTemplateName is the name of a ResourceClaimTemplate in the namespace of the set. Each group gets a ResourceClaim from it.
	ResourceClaimTemplateName *string
}
