// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list,delete
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Run is one execution of a JobSet, SequentialJob or LeaderWorkerSet that has ended. The server records it, and keeps it after the object
// is gone. A Run is never changed by clients; it can only be deleted.
type Run struct {
	metav1.TypeMeta `json:""`

	// metadata has the namespace, the labels and the kept annotations of the object that ran, and the name and UID of the run. The creation
	// time is when the run was recorded.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// object is what ran.
	Object RunObject `json:"object" protobuf:"bytes,2,opt,name=object"`

	// state is how the run ended: Completed, Failed, Cancelled or Deleted.
	State RunState `json:"state" protobuf:"bytes,3,opt,name=state,casttype=RunState"`

	// reason is why the run ended in this state, in one word. Empty if nothing is known.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`

	// message is why the run ended in this state, in a sentence. At most 1024 bytes; what is longer was cut.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,5,opt,name=message"`

	// user is the name of the user who created the object. Empty for an object that was created before the server recorded users. At most 256
	// bytes; what is longer was cut.
	// +optional
	User string `json:"user,omitempty" protobuf:"bytes,6,opt,name=user"`

	// endUser is the name of the user who cancelled or deleted the object. Empty if no user did, or if it is not known.
	// +optional
	EndUser string `json:"endUser,omitempty" protobuf:"bytes,7,opt,name=endUser"`

	// queue is the name of the queue that admitted the object, from its label kueue.x-k8s.io/queue-name. Empty for none.
	// +optional
	Queue string `json:"queue,omitempty" protobuf:"bytes,8,opt,name=queue"`

	// priorityClass is the name of the priority class of its pods, or of Kueue if a label names one. Empty for none.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty" protobuf:"bytes,9,opt,name=priorityClass"`

	// beginTime is when the run began: the first start of the first attempt that is known, or the creation of the object.
	BeginTime metav1.MicroTime `json:"beginTime" protobuf:"bytes,10,opt,name=beginTime"`

	// endTime is when the run ended. Lists are sorted by it, the newest first.
	EndTime metav1.MicroTime `json:"endTime" protobuf:"bytes,11,opt,name=endTime"`

	// pods is the number of pods that the spec asked for.
	// +optional
	// +k8s:validation:minimum=0
	Pods int64 `json:"pods,omitempty" protobuf:"varint,12,opt,name=pods"`

	// attempts is the number of attempts of the run.
	// +optional
	// +k8s:validation:minimum=0
	Attempts int32 `json:"attempts,omitempty" protobuf:"varint,13,opt,name=attempts"`

	// restarts is the number of restarts of the whole run or of parts of it.
	// +optional
	// +k8s:validation:minimum=0
	Restarts int32 `json:"restarts,omitempty" protobuf:"varint,14,opt,name=restarts"`

	// readyMilliseconds is how long all pods were ready, in milliseconds.
	// +optional
	// +k8s:validation:minimum=0
	ReadyMilliseconds int64 `json:"readyMilliseconds,omitempty" protobuf:"varint,15,opt,name=readyMilliseconds"`

	// goodMilliseconds is how long all pods were ready for work that a checkpoint has kept, in milliseconds. Absent if the job reported no
	// checkpoints.
	// +optional
	// +k8s:validation:minimum=0
	GoodMilliseconds *int64 `json:"goodMilliseconds,omitempty" protobuf:"varint,16,opt,name=goodMilliseconds"`

	// resources are what the pods requested, multiplied by the time for which all of them were ready.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []ResourceTime `json:"resources,omitempty" protobuf:"bytes,17,rep,name=resources"`

	// failures are the first causes of the attempts that failed, the newest last. At most 100; the oldest is dropped first.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=100
	Failures []RunFailure `json:"failures,omitempty" protobuf:"bytes,18,rep,name=failures"`

	// children are what became of the parts of the object: the replicatedJobs of a JobSet, the steps of a SequentialJob, the groups of a
	// LeaderWorkerSet. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=100
	Children []RunChild `json:"children,omitempty" protobuf:"bytes,19,rep,name=children"`

	// details are the spec and the last status of the object. Lists leave them out.
	// +optional
	Details *RunDetails `json:"details,omitempty" protobuf:"bytes,20,opt,name=details"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RunList is a list of Runs.
type RunList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the Runs of the list, those that ended last first.
	Items []Run `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// RunState is how a run ended.
// +enum
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
	APIVersion string `json:"apiVersion" protobuf:"bytes,1,opt,name=apiVersion"`

	// kind is the kind of the object.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// name is the name of the object.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`

	// uid is the UID of the object.
	UID types.UID `json:"uid" protobuf:"bytes,4,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// namespaceUID is the UID of the namespace in which the object was created. Empty if it is not known.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty" protobuf:"bytes,5,opt,name=namespaceUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// execution distinguishes the executions of the object: one that is retried after it has ended has a later one, with a higher number.
	// +k8s:validation:minimum=1
	Execution int32 `json:"execution" protobuf:"varint,6,opt,name=execution"`

	// creationTime is when the object was created.
	CreationTime metav1.Time `json:"creationTime" protobuf:"bytes,7,opt,name=creationTime"`

	// owner is the SequentialJob or DisaggregatedSet that created the object. Absent for an object of a user.
	// +optional
	Owner *RunOwner `json:"owner,omitempty" protobuf:"bytes,8,opt,name=owner"`
}

// RunOwner is the object whose controller created the object that ran.
type RunOwner struct {
	// apiVersion is the API group and version of the owner.
	APIVersion string `json:"apiVersion" protobuf:"bytes,1,opt,name=apiVersion"`

	// kind is the kind of the owner.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// name is the name of the owner.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`

	// uid is the UID of the owner.
	UID types.UID `json:"uid" protobuf:"bytes,4,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`
}

// ResourceTime is how much of a resource was requested, and for how long.
type ResourceTime struct {
	// name is the name of the resource, for example cpu, memory or nvidia.com/gpu.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// amountSeconds is the requested amount multiplied by the time in seconds: core-seconds for cpu, MiB-seconds for memory, storage and
	// huge pages, and units × seconds for other resources.
	// +k8s:validation:minimum=0
	AmountSeconds int64 `json:"amountSeconds" protobuf:"varint,2,opt,name=amountSeconds"`
}

// RunFailure is the first cause of the failure of an attempt.
type RunFailure struct {
	// attempt is the number of the attempt that failed. 0 if it is not known.
	// +optional
	Attempt int32 `json:"attempt,omitempty" protobuf:"varint,1,opt,name=attempt"`

	// child is the name of the step or of the Job that failed.
	// +optional
	Child string `json:"child,omitempty" protobuf:"bytes,2,opt,name=child"`

	// pod is the name of the pod that failed first. Empty when no pod was left to read.
	// +optional
	Pod string `json:"pod,omitempty" protobuf:"bytes,3,opt,name=pod"`

	// node is the name of the node that the pod ran on.
	// +optional
	Node string `json:"node,omitempty" protobuf:"bytes,4,opt,name=node"`

	// container is the name of the container that failed.
	// +optional
	Container string `json:"container,omitempty" protobuf:"bytes,5,opt,name=container"`

	// exitCode is the exit code of the container.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty" protobuf:"varint,6,opt,name=exitCode"`

	// signal is the number of the signal that ended the container, if one did.
	// +optional
	Signal *int32 `json:"signal,omitempty" protobuf:"varint,7,opt,name=signal"`

	// reason is why, in one word.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,8,opt,name=reason"`

	// message is why, for humans. At most 1024 bytes; what is longer was cut.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,9,opt,name=message"`

	// time is when the container ended, or the pod or the Job failed.
	// +optional
	Time *metav1.Time `json:"time,omitempty" protobuf:"bytes,10,opt,name=time"`
}

// RunChild is what became of a part of an object.
type RunChild struct {
	// name is the name of the replicatedJob, of the step, or of the group.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// kind is the kind of the children: Job, JobSet or StatefulSet.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// state is the state of a step at the end of the run. Empty for several children of one kind.
	// +optional
	State string `json:"state,omitempty" protobuf:"bytes,3,opt,name=state"`

	// wanted is the number of children that the spec asked for.
	// +optional
	Wanted int32 `json:"wanted,omitempty" protobuf:"varint,4,opt,name=wanted"`

	// ready is the number of children that were ready at the end of the run.
	// +optional
	Ready int32 `json:"ready,omitempty" protobuf:"varint,5,opt,name=ready"`

	// succeeded is the number of children that had completed.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty" protobuf:"varint,6,opt,name=succeeded"`

	// failed is the number of children that had failed.
	// +optional
	Failed int32 `json:"failed,omitempty" protobuf:"varint,7,opt,name=failed"`

	// attempts is the number of attempts of a step. 0 for children that do not count them.
	// +optional
	Attempts int32 `json:"attempts,omitempty" protobuf:"varint,8,opt,name=attempts"`
}

// RunDetails are the spec and the last status of an object. Values of environment variables are replaced by a hash, unless the server
// allows them, and what an administrator has chosen to leave out is absent.
type RunDetails struct {
	// spec is the spec of the object, in the version of object.apiVersion.
	// +optional
	Spec runtime.RawExtension `json:"spec,omitempty" protobuf:"bytes,1,opt,name=spec"`

	// status is the last status of the object, in the version of object.apiVersion.
	// +optional
	Status runtime.RawExtension `json:"status,omitempty" protobuf:"bytes,2,opt,name=status"`
}
