// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Observed is all that decisions depend on. What it points to is shared and must not be changed. Lists are in any order.
type Observed struct {
	// Set is the set as stored.
	Set *leaderworkersetv1.LeaderWorkerSet
	// Leader is the StatefulSet with the name of the set, whole; nil if there is none. LeaderTaken means that it has another owner, and
	// that Leader is nil.
	Leader      *appsv1.StatefulSet
	LeaderTaken bool
	// LeaderKey is the key of status.currentRevision of Leader, at which it creates pods that an update does not reach.
	LeaderKey hostplan.Known[string]
	// Applied is what ApplyHash returned for the leader StatefulSet that this controller last applied; empty if it does not know.
	Applied string
	// AppliedGeneration is the generation that the leader StatefulSet had after that; 0 if it is not known.
	AppliedGeneration int64
	// Leaders are the pods that the leader StatefulSet controls, terminating ones included.
	Leaders []Pod
	// GoneLeaders are pods that were among Leaders and are gone, as far as this process has seen, in the order in which
	// they went. A pod is left out once it is Evaluated.
	GoneLeaders []Pod
	// Evaluated are the leader pods that are gone or are being deleted, and whose deletion was evaluated.
	Evaluated map[types.UID]bool
	// Workers are the StatefulSets that leader pods control, those of leader pods that are gone included.
	Workers []Workers
	// RefusedPods are why the API refuses pods to the StatefulSet controller, one for each StatefulSet that lacks pods for that, and
	// PodsRefusedSince is since when there are any.
	RefusedPods      []hostplan.Refusal
	PodsRefusedSince time.Time
	// UnschedulableSince is since when the scheduler finds no node for pods of the set; zero if it finds one for each.
	UnschedulableSince time.Time
	// Services are the Services with the label of the set.
	Services []Child
	// Revisions are the ControllerRevisions that the set controls, and the ControllerRevisions with its label that have no controller.
	Revisions []*appsv1.ControllerRevision
	// PodGroups are the PodGroups of the gang scheduler with the label of the set.
	PodGroups []Child
	// Orphans are objects without a controller that are made like children of the set.
	Orphans []Orphan
	// Gang is the scheduler of gangs; empty for none.
	Gang GangProvider
	// Domains are the values of the node label of exclusive placement, by the name of the node. Nodes without the label are absent.
	Domains map[string]string
	// Causes are why groups failed, by the UID of the leader pod. Those that no decision has asked for are absent, and so are unknown.
	Causes map[types.UID]hostplan.Known[*jobsetv1alpha2.FailureCause]
	// ServedSince is since when the server of the set, which mutates pods, is served without interruption, as far as this
	// process has seen; zero if it is not served.
	ServedSince time.Time
	// TakenSince is since when names are taken that the last pass found taken, and TroubledSince since when each pass had troubles with
	// children; zero if the last one had none.
	TakenSince    Taken
	TroubledSince time.Time
	// Before is what the last decision found out; nil if nothing is known.
	Before *Reading
	// CountsWaited is for how long counts have waited for other changes of the status; 0 if none wait.
	CountsWaited time.Duration
	// Now is the time of the observation, in whole seconds.
	Now metav1.Time
}

// GangProvider is a scheduler of gangs.
type GangProvider = gangplan.Provider

// Schedulers of gangs.
const (
	GangVolcano         = gangplan.Volcano
	GangCoscheduling    = gangplan.Coscheduling
	GangKubernetes      = gangplan.Kubernetes
	GangKubernetesAlpha = gangplan.KubernetesAlpha
)

// Ref names one incarnation of a child.
type Ref = hostplan.Ref

// Pod is what decisions use of a pod.
type Pod struct {
	Ref
	// Controller is the UID of its controller.
	Controller types.UID
	// Index is the index of its worker-index label; -1 if there is none.
	Index int32
	// Group is the group of its group-index label; -1 if there is none.
	Group int32
	// Revision is the key of its revision.
	Revision string
	// OwnRevision is the revision of its StatefulSet that it was created from; empty if that is not known.
	OwnRevision string
	// Phase of the pod.
	Phase corev1.PodPhase
	// Ready is its condition Ready, and NotReadySince since when it is not True: zero while it is True, and the creation
	// of the pod if it has no such condition.
	Ready         bool
	NotReadySince metav1.Time
	// Restarted means that a container or an init container of it has restarted.
	Restarted bool
	// Deleting means that it is being deleted, and DeletingSince since when; zero if that is not known.
	Deleting      bool
	DeletingSince metav1.Time
	// Node is the name of its node; empty while it has none.
	Node string
	// Created is when it was created.
	Created metav1.Time
	// RequestsTPUs means that a container of it requests TPUs.
	RequestsTPUs bool
	// Unschedulable is why the scheduler finds no node for it; empty if it finds one, or has not tried.
	Unschedulable string
	// HeldByKueue means that it waits until Kueue has quota for it.
	HeldByKueue bool
	// Size is the number of pods of its group, as its annotation says; 0 if there is none.
	Size int32
	// LeaderName is its annotation leader-name.
	LeaderName string
}

// Plan is what has to be done to bring the children of a set, and its status, to where they should be. The zero Plan does nothing.
type Plan struct {
	// Asks are what the decision needs to know first. A plan with any holds nothing else.
	Asks Asks
	// DespiteQueue means that the set names a queue and no pod of it waits for quota. In a cluster without Kueue, such a set runs
	// without quota. Pods that Kueue held before it was removed still wait.
	DespiteQueue bool

	// Status is the complete next status; nil when the stored one is right.
	Status *leaderworkersetv1.LeaderWorkerSetStatus
	// Events are reported once Status is stored.
	Events []Event
	// Notices are reported whatever becomes of Status.
	Notices []Event

	// Adopt are orphans that get a controller, if the set that is stored is still this one.
	Adopt []Adoption
	// CreateRevision is a ControllerRevision to create before ApplyLeader; nil for none. RevisionEvent is reported once it was.
	CreateRevision *appsv1.ControllerRevision
	RevisionEvent  Event
	// ApplyLeader is the leader StatefulSet to apply by server-side apply with force; nil when the one that exists is right. LeaderEvents are
	// reported once it was.
	ApplyLeader  *appsv1.StatefulSet
	LeaderEvents []Event
	// CreateServices are Services to create.
	CreateServices []*corev1.Service
	// DeleteLeaders are leader pods to delete in the foreground.
	DeleteLeaders []Deletion
	// CreateWorkers are StatefulSets of workers to create.
	CreateWorkers []NewWorkers
	// CreatePodGroups are PodGroups to create.
	CreatePodGroups []*unstructured.Unstructured
	// TouchWorkers are StatefulSets at which their controller is to look again.
	TouchWorkers []Touch
	// TouchLeader asks the same for the leader StatefulSet.
	TouchLeader bool
	// DeleteRevisions are ControllerRevisions to delete.
	DeleteRevisions []Ref

	// Evaluated are the leader pods, gone or being deleted, whose deletion counts as evaluated once Status is stored.
	Evaluated []types.UID
	// Recorded are the leader pods of Evaluated that the stored status has: they count as evaluated whatever becomes of Status.
	Recorded []types.UID
	// More means that the plan is full, and that the next decision has more to do.
	More bool
	// RequeueAfter is the time after which a decision is due even if nothing happens; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
	// Reading is what the decision found out, for the next one.
	Reading *Reading
}

// Deletion is a leader pod to delete.
type Deletion struct {
	Ref
	// Event is reported when the request was accepted; nil for none.
	Event *Event
	// Requested means that users have requested the restart of the group.
	Requested bool
	// Group is the index of the group.
	Group int32
}

// NewWorkers is a StatefulSet of workers to create.
type NewWorkers struct {
	*appsv1.StatefulSet
	// Event is reported when it was created.
	Event Event
}

// Touch is a StatefulSet whose annotation changes, valid only for the version that it was derived from.
type Touch struct {
	Ref
	ResourceVersion string
}

// Event is an event about the set, and perhaps a pod.
type Event = hostplan.Event

// Results are what became of a plan.
type Results struct {
	// NameTaken means that another object has the name of the leader StatefulSet or of the revision. LeaderError or RevisionError says so.
	NameTaken bool
	// LeaderError is why the leader StatefulSet was not applied; empty if it was, or did not have to be.
	LeaderError string
	// ServiceError is why a Service was not created.
	ServiceError string
	// WorkerErrors are why StatefulSets of workers were not created, by the name of the leader pod. AlreadyExists is none.
	WorkerErrors map[string]string
	// TakenServices and TakenWorkers are names of Services and of StatefulSets of workers that other objects have, or
	// those of a leader pod that is gone.
	TakenServices, TakenWorkers []string
	// CreatedWorkers are the indexes in Plan.CreateWorkers of StatefulSets that were created. DeletedLeaders are the
	// indexes in Plan.DeleteLeaders of pods whose deletion was accepted.
	CreatedWorkers, DeletedLeaders []int
	// Adopted are the indexes in Plan.Adopt of those that have their controller, and AdoptError is why one has not; empty
	// if it is tried again anyway.
	Adopted    []int
	AdoptError string
	// LeaderApplied means that the leader StatefulSet was applied.
	LeaderApplied bool
	// Accepted is the number of writes of children that were carried out.
	Accepted int
	// IgnoredQueue is the queue of a set that runs despite it in a cluster without Kueue, to be reported once.
	IgnoredQueue string
	// RevisionError is why the revision was not created.
	RevisionError string
	// KeptLeaders are the indexes in Plan.DeleteLeaders of those whose deletion the API has refused, and of those that were not asked for.
	KeptLeaders []int
	// Failed are the other writes that have failed, one for each action and kind. Those that met another version are not among them.
	Failed []FailedWrite
	// Blocked are the children that could not be created or updated, less those whose names are taken.
	Blocked []hostplan.BlockedChild
	// Interrupted means that the time of the pass was over before all was done.
	Interrupted bool
}
