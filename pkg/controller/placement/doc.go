// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which Job gets which topology domain, alone, before any pod exists. A domain is the nodes
// with one value of a label, such as a rack. The package is pure: no client, no clock, no random numbers, and equal
// input in any order gives equal output.
//
// # Rules
//
// A domain is taken if it has pods or a present assignment of another Job of a JobSet, exclusive or not, whose priority
// is not lower; or any, if the preemption policy is Never. An assignment takes all domains of other keys that share a
// node with its own. Jobs of lower priority do not take a domain; the domain of one is chosen only if there is none without, and
// Result.Displaces names them. Pods of no JobSet only take room.
//
// Domains that are not taken are preferred in this order: with room now; with room once pods of lower priority have
// gone; with Jobs of lower priority; with a lack of room; too small. Within each, the one that leaves least unused (or
// lacks least) comes first, or, with levels, domains in few blocks. Room is exact for pods of one shape, node by node:
// node selector, required node affinity, taints, requests with overhead and the defaults of the namespace, and
// DaemonSet pods that are still to come. What only the scheduler knows counts as there: see Unknowns.
//
// Only exclusivity makes a set wait. Lack of room orders the choice, and decides between Assign and Affinity where
// WhenFull is affinity. One exception follows from the absence of deadlock, below: a domain that is too small even when
// it is empty is not used while larger ones exist that others have.
//
// All Jobs of a request get a domain or none does. Requests are served by priority, then those that have present
// assignments (restarts), then by age. A smaller set may pass one that waits for more domains; nothing is kept free for
// that. A Job returns to its previous domain if it is not taken, has room and as many nodes as before.
//
// # Sets that start in stages
//
// A set with dependsOn or startupPolicyOrder InOrder gets the domains of all its Jobs at the start; they are present
// assignments from then on, though some Jobs come later. Placing each stage when it starts would have sets hold the
// domains of the first stage while they wait for those of the next, and two sets that do so can wait for each other for
// good: the Jobs of the first stage run until the set ends. (The histories of package simulation show this.)
//
// With one step for the whole set there is no deadlock: a set that waits holds nothing, as the host drops its
// assignments, and a set that holds domains waits for no domain. What its pods may wait for is that other pods leave,
// or nodes return, in domains that are large enough; pods of other sets are not there, or give way. Therefore domains
// that are too small are not used if there are others: a set would hold some domains and wait, in effect, for larger
// ones. If no domain of the cluster is large enough, the Jobs go to the largest, because what is known about room may
// be wrong and an autoscaler may add to it; such a set holds domains without end, as it would with upstream's affinity.
//
// The price is that domains of later stages are idle for a while. It is not paid where it would be highest: if all Jobs
// of a stage must be complete before any of the next starts, both may have the same domains (waves.go).
//
// # What the host does
//
//  1. While any set asks for placement, it watches nodes and pods. Handlers reduce each with NewNode and NewPod, and
//     keep that only (about 1 KiB for a node with 34 labels and 70 bytes for a pod). For pods of JobSets, it passes
//     "<namespace>/<jobset name>" and the label job-key. Shapes of pod templates come from NewShape, once for each
//     template; it leaves the topology key out of the node selector. DaemonSets become Daemons with DaemonOwner; their
//     templates get the tolerations that the DaemonSet controller adds.
//  2. When a set is to start, restart or resume, or gets more Jobs, it is a Request with those Jobs, in the order of
//     its spec and with all of its replicatedJobs. Sets for which Kueue assigned a topology, suspended sets, and sets
//     with the node-selector strategy are none. Requests of all sets go into one call of Place, under one lock, so that
//     order means something; results are carried out before the next call. Jobs of a set that run elsewhere than the
//     assignments say are Running, by their node selectors: their pods may not be watched yet, and pods of one set do
//     not repel each other.
//  3. Present assignments belong to Jobs that exist and have not finished, to Jobs that were placed and not created
//     yet, and to Jobs that restart, until they are placed. The assignment (domain and number of nodes) is stored with
//     the Job, and for Jobs that come later with the set, before anything is created; memory alone may not hold it, but
//     a placement is present from the moment it is decided, not when a cache shows it.
//  4. Assign: the domain goes into the node selector when the Job is created, or in the update that resumes it.
//     Affinity: the Job is created with affinity and anti-affinity among pods, its assignment is dropped, and once its
//     first pod has a node, the domain of that one is its assignment. Wait: its assignments are dropped, and it asks
//     again when nodes, pods or assignments change. Shortage.Message is for the condition.
//  5. A suspended, finished or deleted set has no assignments. Job.Previous comes from the last assignment, also after a suspension.
//  6. For each Job with a domain whose pods are unschedulable, DecideMove says whether it is time. If it is, Place is
//     asked for that Job alone, with its domain (and those it left before, unless there is no other) in Avoid, after
//     the sets that wait have been served. It moves only if the outcome is Placed; it counts no restart.
//  7. Pods have required anti-affinity, with the topology as key, against those of JobSets of the same priority: in a
//     domain that was chosen, against those of other sets. So what comes later stays out, and what came in between
//     makes the Job move.
//
// # Limits
//
// Pods repel those of JobSets of equal priority only, because preemption, which looks at one node at a time, cannot
// make room in a domain from which pods on several nodes repel. Pods of lower priority that come later may share a
// domain. ReplicatedJobs of one set with different keys are placed one key after the other, and so not in every case in
// which they could be. A set that asks for more than about a million comparisons to be arranged may be found to have no
// room.
package placement
