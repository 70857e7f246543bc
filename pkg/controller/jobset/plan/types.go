// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// Observed is all that decisions depend on. What it points to is shared and must not be changed.
type Observed struct {
	// JobSet is the set as stored.
	JobSet *jobsetv1alpha2.JobSet
	// Jobs are the Jobs that the set owns by UID, in any order, terminating ones included.
	Jobs []*batchv1.Job
	// InPlace is how far the pods have come with restarting where they are, by the UID of their Job. Jobs none of whose
	// pods says anything may be absent.
	InPlace hostplan.Known[map[types.UID]inplace.State]
	// FailedInPlace is what failed in the pod that Asks.FirstInPlace names.
	FailedInPlace hostplan.Known[*jobsetv1alpha2.FailureCause]
	// Cause is why the Job failed that Asks.FirstCause names.
	Cause hostplan.Known[*jobsetv1alpha2.FailureCause]
	// Unschedulable are the pods that wait for a node.
	Unschedulable Unschedulable
	// RefusedPods are why the API refuses pods to the Job controller, by the UID of the Job. Each of these Jobs lacks pods.
	RefusedPods map[types.UID]Refusal
	// PodsRefusedSince is since when there are any.
	PodsRefusedSince time.Time
	// ShutOut are the UIDs of the Jobs with pods that find no node, some nodes being excluded by their affinity.
	ShutOut hostplan.Known[sets.Set[types.UID]]
	// AvoidFailedNodes is for how long pods keep off nodes on which an attempt failed, unless the set says otherwise; 0 for not at all.
	AvoidFailedNodes time.Duration
	// Nodes is about how many nodes the cluster has.
	Nodes hostplan.Known[int]
	// Placed is what became of the question for the domains of Asks.Unplaced.
	Placed hostplan.Known[domains.Placed]
	// Priorities are the values of PriorityClasses by name, and under the empty name that of pods which name none; nil
	// without exclusive placement.
	Priorities map[string]int32
	// Waiting are the pods that wait for a node, by the UID of their Job; only for sets with a placement.
	Waiting map[types.UID]domains.Waiting
	// Moving is what became of the question where Asks.Stuck go.
	Moving hostplan.Known[domains.Moving]
	// Located are the domains that the scheduler has chosen for Asks.Unlocated.
	Located hostplan.Known[domains.Located]
	// MoveAfter is how long pods wait for nodes before their Job moves to another domain.
	MoveAfter time.Duration
	// Grouped is what the main API has of the groups of the set; nil if groups are not made.
	Grouped *gang.Observed
	// ServiceExists reports whether a Service of the name that the set uses exists, whoever owns it.
	ServiceExists bool
	// OwnEndpoints means that the Service, if it is created, is created so that the cluster does not write its addresses,
	// because this program does.
	OwnEndpoints bool
	// EndpointsRefusal is why the cluster writes the addresses of the Service although the set asks for those of this
	// program; nil if that is not known. Without a reason, they are written as the set asks.
	EndpointsRefusal *Refusal
	// Claims are the claims of ClaimNames that exist.
	Claims sets.Set[string]
	// Restored says that the store was restored from a backup, and that no controller has written the status of the set since.
	Restored hostplan.Known[Restored]
	// Deferred is what earlier observations showed and the status does not hold yet.
	Deferred Deferred
	// CreateFrom is the place, among all Jobs of the set, of the one that is created first; those before it come last. It
	// moves past what has been planned or refused, so that no refused Job keeps others waiting.
	CreateFrom int64
	// RefusedSince is since when each pass was refused the creation of something; zero if the last one was not.
	RefusedSince time.Time
	// MaxBacklog is how many Jobs of the set may wait for the cluster's Job controller; 0 for as many as of any set.
	MaxBacklog int
	// Stalled means that none of the Jobs of the set that wait for it has been taken care of for a minute.
	Stalled bool
	// Mismatches are about features that the set uses and that are off because the API server does not serve them, one
	// sentence each; only those that are due to be reported.
	Mismatches []string
	// RetryFeaturesAfter is after which time one of these features may be on again; 0 if the set lacks none.
	RetryFeaturesAfter time.Duration
	// Now is the time of the observation.
	Now metav1.Time
	// KeepAttempts is whether the API server keeps the history of the set.
	KeepAttempts bool
	// Gates are the feature gates.
	Gates gates.Gates

	// index is there while a decision is made.
	index *index
}

// Restored is what is known of a set in a store that was restored from a backup.
type Restored = hostplan.Restored

// Plan is what has to be done to bring the children of a set, and its status, to where they should be. The zero Plan
// does nothing.
type Plan struct {
	// Status is the complete next status; nil when the stored one is right.
	Status *jobsetv1alpha2.JobSetStatus
	// Events are reported once Status is stored.
	Events []Event
	// Asks are what the decision depends on and the snapshot does not have. If there is any, the plan holds nothing else.
	Asks Asks
	// AwaitsDomains means that Jobs can be neither created nor resumed before they have domains.
	AwaitsDomains bool
	// DespiteQueue means that the set names a queue and does not wait for it.
	DespiteQueue bool

	// DeleteJobs are deleted in the foreground.
	DeleteJobs []JobRef
	// PatchJobs are changed in place.
	PatchJobs []JobPatch
	// CreateService is the headless Service to create, if any.
	CreateService *corev1.Service
	// CreateClaims are the volume claims to create, before any Job that mounts them.
	CreateClaims []*corev1.PersistentVolumeClaim
	// Groups are the changes of the groups of the pods, before any Job.
	Groups gang.Changes
	// CreateJobs are the Jobs to create, in the order of the spec, from Observed.CreateFrom on.
	CreateJobs []*batchv1.Job
	// Backlog is how many Jobs of the set wait for the Job controller already, and Resumed how many do once PatchJobs are made.
	Backlog, Resumed int
	// BacklogFull means that more Jobs are due to be created or resumed than may wait.
	BacklogFull bool
	// DeleteJobSet means that the set has outlived its time after finishing and is deleted in the foreground.
	DeleteJobSet bool

	// More means that a plan is full, and that the next decision, due as soon as this plan is carried out, has more to do.
	More bool
	// RequeueAfter is the time after which a decision is due even if nothing happens; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
	// Problems are children left alone because their data is malformed, one sentence each.
	Problems []string
}

// Event is an event about the set.
type Event = hostplan.Event

// JobRef names one Job and its very incarnation.
type JobRef = hostplan.Ref

// JobPatch is a change of an existing Job, valid only for the version of the Job that it was derived from.
type JobPatch struct {
	JobRef
	// ResourceVersion is the resource version of the Job the decision was made on.
	ResourceVersion string
	// ClearStartTime removes status.startTime first; without that the Job API refuses changes of the pod template of a
	// Job that has been started before.
	ClearStartTime bool
	// Suspend is the next value of spec.suspend; nil leaves it.
	Suspend *bool
	// Annotations are set on the Job itself, beside those that it has.
	Annotations map[string]string
	// Unannotated means that the Job has no annotations at all.
	Unannotated bool
	// Directives are the next scheduling directives of the pod template; nil leaves them.
	Directives *Directives
	// Size is the next size of the Job; nil leaves it.
	Size *Size
}

// Directives are those parts of a pod template that may change while a Job is suspended. Each one is complete and
// replaces what the Job has, but for labels and annotations that were not observed (see ComparedOnResume): these stay.
type Directives struct {
	// Labels of the pods.
	Labels map[string]string
	// Annotations of the pods.
	Annotations map[string]string
	// OldLabels and OldAnnotations are the labels and annotations that were observed; nil if the Job has none at all.
	OldLabels, OldAnnotations map[string]string
	// NodeSelector of the pods.
	NodeSelector map[string]string
	// Tolerations of the pods.
	Tolerations []corev1.Toleration
	// SchedulingGates of the pods.
	SchedulingGates []corev1.PodSchedulingGate
	// Resources are the resources of the containers whose requests or limits change.
	Resources []ContainerResources
}

// ContainerResources are what one container of a pod template asks for.
type ContainerResources struct {
	// Init means that the container is an init container.
	Init bool
	// Index is its place among its like in the Job.
	Index int
	// Resources are complete, with the claims that the Job has.
	Resources corev1.ResourceRequirements
}

// Size is the elastic size of an Indexed Job.
type Size struct {
	// Parallelism and Completions of the Job; nil means none.
	Parallelism, Completions *int32
}
