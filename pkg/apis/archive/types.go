// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Run is one execution of a JobSet, SequentialJob or LeaderWorkerSet that has ended. The server records it, and keeps it after the object
// is gone. A Run is never changed by clients; it can only be deleted.
type Run struct {
	metav1.TypeMeta

	// metadata has the namespace, the labels and the kept annotations of the object that ran, and the name and UID of the run. The creation
	// time is when the run was recorded.
	metav1.ObjectMeta

	// object is what ran.
	Object RunObject

	// state is how the run ended: Completed, Failed, Cancelled or Deleted.
	State RunState

	// reason is why the run ended in this state, in one word. Empty if nothing is known.
	Reason string

	// message is why the run ended in this state, in a sentence. At most 1024 bytes; what is longer was cut.
	Message string

	// user is the name of the user who created the object. Empty for an object that was created before the server recorded users. At most 256
	// bytes; what is longer was cut.
	User string

	// endUser is the name of the user who cancelled or deleted the object. Empty if no user did, or if it is not known.
	EndUser string

	// queue is the name of the queue that admitted the object, from its label kueue.x-k8s.io/queue-name. Empty for none.
	Queue string

	// priorityClass is the name of the priority class of its pods, or of Kueue if a label names one. Empty for none.
	PriorityClass string

	// beginTime is when the run began: the first start of the first attempt that is known, or the creation of the object.
	BeginTime metav1.MicroTime

	// endTime is when the run ended. Lists are sorted by it, the newest first.
	EndTime metav1.MicroTime

	// pods is the number of pods that the spec asked for.
	Pods int64

	// attempts is the number of attempts of the run.
	Attempts int32

	// restarts is the number of restarts of the whole run or of parts of it.
	Restarts int32

	// readyMilliseconds is how long all pods were ready, in milliseconds.
	ReadyMilliseconds int64

	// goodMilliseconds is how long all pods were ready for work that a checkpoint has kept, in milliseconds. Absent if the job reported no
	// checkpoints.
	GoodMilliseconds *int64

	// resources are what the pods requested, multiplied by the time for which all of them were ready.
	Resources []ResourceTime

	// failures are the first causes of the attempts that failed, the newest last. At most 100; the oldest is dropped first.
	Failures []RunFailure

	// children are what became of the parts of the object: the replicatedJobs of a JobSet, the steps of a SequentialJob, the groups of a
	// LeaderWorkerSet. At most 100.
	Children []RunChild

	// details are the spec and the last status of the object. Lists leave them out.
	Details *RunDetails
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunList is a list of Runs.
type RunList struct {
	metav1.TypeMeta

	// metadata is the standard list metadata.
	metav1.ListMeta

	// items are the Runs of the list, those that ended last first.
	Items []Run
}

// RunState is how a run ended.
type RunState string

const (
	// RunCompleted means that the run succeeded.
	RunCompleted RunState = "Completed"
	// RunFailed means that the run failed permanently.
	RunFailed RunState = "Failed"
	// RunCancelled means that a user cancelled the run.
	RunCancelled RunState = "Cancelled"
	// RunDeleted means that the object was deleted before the run had ended.
	RunDeleted RunState = "Deleted"
)

// RunObject is the object that ran.
type RunObject struct {
	// apiVersion is the API group and version of the object.
	APIVersion string

	// kind is the kind of the object.
	Kind string

	// name is the name of the object.
	Name string

	// uid is the UID of the object.
	UID types.UID

	// namespaceUID is the UID of the namespace in which the object was created. Empty if it is not known.
	NamespaceUID types.UID

	// execution distinguishes the executions of the object: one that is retried after it has ended has a later one, with a higher number.
	Execution int32

	// creationTime is when the object was created.
	CreationTime metav1.Time

	// owner is the SequentialJob or DisaggregatedSet that created the object. Absent for an object of a user.
	Owner *RunOwner
}

// RunOwner is the object whose controller created the object that ran.
type RunOwner struct {
	// apiVersion is the API group and version of the owner.
	APIVersion string

	// kind is the kind of the owner.
	Kind string

	// name is the name of the owner.
	Name string

	// uid is the UID of the owner.
	UID types.UID
}

// ResourceTime is how much of a resource was requested, and for how long.
type ResourceTime struct {
	// name is the name of the resource, for example cpu, memory or nvidia.com/gpu.
	Name string

	// amountSeconds is the requested amount multiplied by the time in seconds: core-seconds for cpu, MiB-seconds for memory, storage and
	// huge pages, and units × seconds for other resources.
	AmountSeconds int64
}

// RunFailure is the first cause of the failure of an attempt.
type RunFailure struct {
	// attempt is the number of the attempt that failed. 0 if it is not known.
	Attempt int32

	// child is the name of the step or of the Job that failed.
	Child string

	// pod is the name of the pod that failed first. Empty when no pod was left to read.
	Pod string

	// node is the name of the node that the pod ran on.
	Node string

	// container is the name of the container that failed.
	Container string

	// exitCode is the exit code of the container.
	ExitCode *int32

	// signal is the number of the signal that ended the container, if one did.
	Signal *int32

	// reason is why, in one word.
	Reason string

	// message is why, for humans. At most 1024 bytes; what is longer was cut.
	Message string

	// time is when the container ended, or the pod or the Job failed.
	Time *metav1.Time
}

// RunChild is what became of a part of an object.
type RunChild struct {
	// name is the name of the replicatedJob, of the step, or of the group.
	Name string

	// kind is the kind of the children: Job, JobSet or StatefulSet.
	Kind string

	// state is the state of a step at the end of the run. Empty for several children of one kind.
	State string

	// wanted is the number of children that the spec asked for.
	Wanted int32

	// ready is the number of children that were ready at the end of the run.
	Ready int32

	// succeeded is the number of children that had completed.
	Succeeded int32

	// failed is the number of children that had failed.
	Failed int32

	// attempts is the number of attempts of a step. 0 for children that do not count them.
	Attempts int32
}

// RunDetails are the spec and the last status of an object. Values of environment variables are replaced by a hash, unless the server
// allows them, and what an administrator has chosen to leave out is absent.
type RunDetails struct {
	// spec is the spec of the object, in the version of object.apiVersion.
	Spec runtime.RawExtension

	// status is the last status of the object, in the version of object.apiVersion.
	Status runtime.RawExtension
}
