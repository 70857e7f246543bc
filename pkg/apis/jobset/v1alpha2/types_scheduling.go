// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

// JobSetSchedulingConfiguration says how the pods of a set are grouped for the scheduler of the cluster.
type JobSetSchedulingConfiguration struct {
	// schedulingPolicy says whether the pods of the set are scheduled one by one (basic) or together (gang). Defaults to gang, without
	// minCount, when the set is created, unless replicatedJobs is set or the replicatedJobs start one after another; without a policy those
	// are scheduled as one gang for each replicatedJob. Must not be set together with replicatedJobs.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty" protobuf:"bytes,1,opt,name=schedulingPolicy"`

	// schedulingConstraints limits where the pods of a group can run. Absent means anywhere. Must not be set together with replicatedJobs.
	// +optional
	SchedulingConstraints *SchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"bytes,2,opt,name=schedulingConstraints"`

	// disruptionMode says whether the scheduler may preempt single pods of a group. Absent leaves it to the cluster, whose default is single.
	// Must not be set together with replicatedJobs.
	// +optional
	DisruptionMode *DisruptionMode `json:"disruptionMode,omitempty" protobuf:"bytes,3,opt,name=disruptionMode"`

	// replicatedJobs groups the replicatedJobs of the set: each of them must be a target of exactly one entry. At most 50.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=50
	ReplicatedJobs []ReplicatedJobScheduling `json:"replicatedJobs,omitempty" protobuf:"bytes,4,rep,name=replicatedJobs"`
}

// ReplicatedJobScheduling is how the pods of some replicatedJobs are scheduled: as one group, or with job as one group for each Job.
type ReplicatedJobScheduling struct {
	// targetReplicatedJobs are the names of the replicatedJobs, 1 to 50, each of at most 256 characters. Exactly one if job is set.
	// +listType=set
	// +k8s:validation:maxItems=50
	TargetReplicatedJobs []string `json:"targetReplicatedJobs" protobuf:"bytes,1,rep,name=targetReplicatedJobs"`

	// schedulingPolicy says whether the pods are scheduled one by one (basic) or together (gang). Absent means gang, without minCount. Must
	// not be set together with job.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty" protobuf:"bytes,2,opt,name=schedulingPolicy"`

	// schedulingConstraints limits where the pods of the group can run. Absent means anywhere. Must not be set together with job.
	// +optional
	SchedulingConstraints *SchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"bytes,3,opt,name=schedulingConstraints"`

	// disruptionMode says whether the scheduler may preempt single pods of the group. Absent leaves it to the cluster, whose default is
	// single. Must not be set together with job.
	// +optional
	DisruptionMode *DisruptionMode `json:"disruptionMode,omitempty" protobuf:"bytes,4,opt,name=disruptionMode"`

	// resourceClaims are devices that the pods of the group share. At most 4. Must not be set together with job.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=4
	ResourceClaims []SchedulingResourceClaim `json:"resourceClaims,omitempty" protobuf:"bytes,5,rep,name=resourceClaims"`

	// job makes each Job of the replicatedJob a group of its own.
	// +optional
	Job *JobScheduling `json:"job,omitempty" protobuf:"bytes,6,opt,name=job"`
}

// JobScheduling is how the pods of each Job of a replicatedJob are scheduled.
type JobScheduling struct {
	// schedulingPolicy says whether the pods of a Job are scheduled one by one (basic) or together (gang). Absent means
	// gang, without minCount.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty" protobuf:"bytes,1,opt,name=schedulingPolicy"`

	// schedulingConstraints limits where the pods of a Job can run. Absent means anywhere.
	// +optional
	SchedulingConstraints *SchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"bytes,2,opt,name=schedulingConstraints"`

	// disruptionMode says whether the scheduler may preempt single pods of a Job. Absent leaves it to the cluster, whose default is single.
	// +optional
	DisruptionMode *DisruptionMode `json:"disruptionMode,omitempty" protobuf:"bytes,3,opt,name=disruptionMode"`

	// resourceClaims are devices that the pods of a Job share. At most 4.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=4
	ResourceClaims []SchedulingResourceClaim `json:"resourceClaims,omitempty" protobuf:"bytes,4,rep,name=resourceClaims"`
}

// SchedulingPolicy says whether the pods of a group are scheduled one by one or together. Exactly one field must be set.
type SchedulingPolicy struct {
	// basic schedules the pods one by one.
	// +optional
	Basic *BasicSchedulingPolicy `json:"basic,omitempty" protobuf:"bytes,1,opt,name=basic"`

	// gang schedules the pods together: none of them gets a node before there is room for minCount of them.
	// +optional
	Gang *GangSchedulingPolicy `json:"gang,omitempty" protobuf:"bytes,2,opt,name=gang"`
}

// BasicSchedulingPolicy schedules pods one by one. It has no settings.
type BasicSchedulingPolicy struct{}

// GangSchedulingPolicy schedules pods together.
type GangSchedulingPolicy struct {
	// minCount is the number of pods, 1 or more, that must fit into the cluster at the same time, and at most the number of pods in the group.
	// Absent means all of them. Must not be set in the policy of a whole set whose replicatedJobs start one after another.
	// +optional
	// +k8s:validation:minimum=1
	MinCount *int32 `json:"minCount,omitempty" protobuf:"varint,1,opt,name=minCount"`
}

// SchedulingConstraints limits where the pods of a group can run.
type SchedulingConstraints struct {
	// topology names the domain that all pods of the group must share. At most 1 item.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1
	Topology []TopologyConstraint `json:"topology,omitempty" protobuf:"bytes,1,rep,name=topology"`
}

// TopologyConstraint names a kind of topology domain.
type TopologyConstraint struct {
	// key is the label of nodes whose value is the domain, for example topology.kubernetes.io/rack.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`
}

// DisruptionMode says whether single pods of a group can be preempted. Exactly one field must be set.
type DisruptionMode struct {
	// single lets the scheduler preempt some pods of the group and leave the others.
	// +optional
	Single *SingleDisruptionMode `json:"single,omitempty" protobuf:"bytes,1,opt,name=single"`

	// all lets the scheduler preempt only all pods of the group together.
	// +optional
	All *AllDisruptionMode `json:"all,omitempty" protobuf:"bytes,2,opt,name=all"`
}

// SingleDisruptionMode lets single pods of a group be preempted. It has no settings.
type SingleDisruptionMode struct{}

// AllDisruptionMode lets only whole groups be preempted. It has no settings.
type AllDisruptionMode struct{}

// SchedulingResourceClaim is a claim on devices that the pods of a group share. Exactly one of resourceClaimName and
// resourceClaimTemplateName must be set. Pods use it by an entry of their resourceClaims that is the same.
type SchedulingResourceClaim struct {
	// name identifies the claim in the group. Must be a DNS-1123 label.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// resourceClaimName is the name of a ResourceClaim in the namespace of the set.
	// +optional
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"bytes,2,opt,name=resourceClaimName"`

	// resourceClaimTemplateName is the name of a ResourceClaimTemplate in the namespace of the set. Each group gets a ResourceClaim from it.
	// +optional
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"bytes,3,opt,name=resourceClaimTemplateName"`
}
