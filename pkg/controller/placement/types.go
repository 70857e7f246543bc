// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is what is known about nodes and what runs on them. The order within its lists does not matter.
type Cluster struct {
	Nodes []Node
	Pods  []Pod
	// Daemons are the DaemonSets. Each node that they match and that has no pod of them yet gets one.
	Daemons []Daemon
}

// Node is what a choice of nodes can depend on. NewNode makes one.
type Node struct {
	Name Name
	// Labels are sorted by key.
	Labels []Label
	// Taints are the taints that keep pods away. They always include the taint of an unschedulable node, and the taint of
	// a node that is not ready.
	Taints      []Taint
	Allocatable Amounts
}

// Label is a label of a node.
type Label struct{ Key, Value Name }

// Taint is a taint of a node.
type Taint struct{ Key, Value, Effect Name }

// Pod is a pod that has a node, or is about to get one. NewPod makes one.
type Pod struct {
	// Node is where it runs, or the node that is nominated for it.
	Node Name
	// Owner is the key of its JobSet, or that of its DaemonSet, or empty.
	Owner Name
	// Job is the job key of a pod of a JobSet: what Job.Key is.
	Job      Name
	Requests Amounts
	Priority int32
}

// Daemon is a DaemonSet.
type Daemon struct {
	// Owner is what the Owner of its pods is.
	Owner Name
	Shape *Shape
}

// Assignment is a Job that has a domain, whether its pods run there, or are still to come, or the Job itself is still to be created.
// Placing a Job results in one, and the next placement gets it back.
type Assignment struct {
	// Set is the key of the JobSet, Group the replicatedJob, Job the job key.
	Set, Group, Job Name
	// Topology is the label key of nodes, Domain the value.
	Topology, Domain Name
	Priority         int32
	// Nodes is how many nodes of the domain the pods could use when the Job was placed.
	Nodes int32
}

// Request asks for a domain for each Job of a set: for all of them or none.
type Request struct {
	// Set is the key of the set, "<namespace>/<name>".
	Set Name
	// Created orders sets of equal priority.
	Created metav1.Time
	// Levels are label keys of nodes, the outermost first: the domains of the set shall lie in as few of their values as
	// possible. A level that is the topology key of a group ends the levels of that group. At most 4 count.
	Levels []Name
	// Groups are the replicatedJobs in the order of the spec, also those without Jobs to place, because others may depend on them.
	Groups []Group
	// Running are Jobs of the set that run where no present assignment says, and where their pods may not be seen yet. The Jobs
	// that are placed keep off these domains. Those of other sets do not: pods of different sets repel each other.
	Running []Assignment
}

// Group is a replicatedJob.
type Group struct {
	Name Name
	// Topology is the label key of nodes. It is empty if the replicatedJob asks for no exclusive placement; then it has no Jobs here.
	Topology Name
	// Shape is what the pods are like, and Pods how many of them each Job runs at once.
	Shape *Shape
	Pods  int32
	// DependsOn is what the Jobs wait for before they start. With the startup order InOrder, each replicatedJob depends on the one before.
	DependsOn []Dependency
	// Jobs are the jobs to place. Jobs that keep their domain are among the present assignments only.
	Jobs []Job
}

// Dependency is on another replicatedJob of the set.
type Dependency struct {
	// Group is its place in the list of groups, which must be an earlier one.
	Group int
	// Complete is whether that has to be complete, rather than ready.
	Complete bool
}

// Job is a Job to place.
type Job struct {
	// Key is its job key, which is the same in each attempt.
	Key Name
	// Index is its place in the set. Jobs of near indices get domains that are near each other, if there are levels.
	Index int32
	// Previous is the domain of the attempt before, and PreviousNodes the Nodes of that assignment. The Job goes there
	// again if it can and the domain has not fewer nodes now.
	Previous      Name
	PreviousNodes int32
	// Avoid are domains that it takes only if there is no other with room, such as the one in which its pods did not get nodes.
	Avoid []Name
}

// Outcome is what became of a request.
type Outcome int

const (
	// Placed means that each Job has a domain with room for its pods.
	Placed Outcome = iota
	// LacksRoom means that there are enough domains that no other Job takes, but that some do not have room.
	LacksRoom
	// Taken means that there are not enough domains without Jobs of other sets.
	Taken
)

func (o Outcome) String() string {
	return [...]string{"Placed", "LacksRoom", "Taken"}[o]
}

// Result is what became of a request.
type Result struct {
	Set     Name
	Outcome Outcome
	// Action is what to do about it.
	Action Action
	// Assignments has one for each Job of the request, in its order, if the action is Assign. If the outcome is LacksRoom,
	// they are the domains that lack least.
	Assignments []Assignment
	// Displaces are the Jobs of lower priority whose domains are used, by set and domain. Preemption will hit them.
	Displaces []Displaced
	// Shortage is set if the outcome is not Placed.
	Shortage *Shortage
}

// Displaced is a domain in which Jobs of a set of lower priority run. It names the one of highest priority among several sets.
type Displaced struct{ Set, Topology, Domain Name }

// Shortage is why Jobs of a group cannot be placed. Each domain is counted once: as taken, unsuitable, short of room, or with room.
type Shortage struct {
	Group, Topology Name
	// Jobs is how many Jobs of the group ask for a domain, Others how many of other groups do at the same time, and Pods how many pods each
	// of the group has.
	Jobs, Others, Pods int
	// Domains is how many domains there are, and Usable how many of them are not taken and have room.
	Domains, Usable int
	// Taken is how many have Jobs of other sets, or of other groups of the set. TakenBy are the sets that take most, at
	// most 10 of them, and Takers the number of all.
	Taken   int
	TakenBy []Taker
	Takers  int
	// Unsuitable is how many have no node on which the pods may run, for each reason that holds for all of its nodes, or
	// for different reasons.
	Unsuitable []Cause
	// Lacking is how many have too little of a resource, each under the one that limits most.
	Lacking []Cause
	// Closest is the domain with most room among those that lack some.
	Closest     Name
	ClosestPods int
	// Missing is what the closest domain lacks of the resource that limits most.
	Missing Amount
	// Unknown is what the pods ask for that was taken for granted.
	Unknown Unknowns
}

// Taker is a set that takes domains.
type Taker struct {
	Set     Name
	Domains int
}

// Cause is for how many domains a reason holds.
type Cause struct {
	Reason  string
	Domains int
}
