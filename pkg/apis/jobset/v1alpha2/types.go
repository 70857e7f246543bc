// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=Restart,verb=create,subresource=restart,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetRestart,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetRestart
// +genclient:method=Suspend,verb=create,subresource=suspend,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetSuspend,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetSuspend
// +genclient:method=Resume,verb=create,subresource=resume,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetResume,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetResume
// +genclient:method=Cancel,verb=create,subresource=cancel,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetCancel,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetCancel
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetRetry,result=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1.JobSetRetry
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSet is one training or HPC run made of groups of Jobs that start, fail and restart together.
type JobSet struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard object metadata. The name becomes the prefix of every Job, Service and pod of the run, so
	// that its length is limited by the longest of those names (63 characters).
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the run that the user asks for.
	// +optional
	Spec JobSetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is what the controller last observed. It is absent until the controller has written it, and can be
	// changed only through the status subresource.
	// +optional
	Status JobSetStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// JobSetList is a list of JobSets.
type JobSetList struct {
	metav1.TypeMeta `json:""`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the JobSets of the list.
	Items []JobSet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// JobSetSpec describes the wanted run.
type JobSetSpec struct {
	// replicatedJobs are the groups of identical Jobs that make up the set, in start-up order. Immutable, except for
	// the scheduling directives of the pod templates (labels, annotations, nodeSelector, tolerations,
	// schedulingGates), which may change while the set is suspended, for requests and limits of containers, which may do
	// so when the MutablePodResourcesForSuspendedJobSets feature is on, and for the size of Indexed Jobs when the
	// ElasticJobSet feature is on.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,1,rep,name=replicatedJobs"`

	// network sets how the pods of the run find each other. Defaults to stable DNS host names that are published
	// before the pods are ready. Immutable.
	// +optional
	Network *Network `json:"network,omitempty" protobuf:"bytes,2,opt,name=network"`

	// successPolicy says which Jobs must succeed for the set to be Completed. Defaults to all Jobs. Immutable.
	// +optional
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty" protobuf:"bytes,3,opt,name=successPolicy"`

	// failurePolicy says what happens when a Job fails. Without it the first failed Job fails the set. Immutable.
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty" protobuf:"bytes,4,opt,name=failurePolicy"`

	// startupPolicy orders the start of the replicatedJobs. Defaults to AnyOrder. Immutable. Deprecated: use dependsOn
	// of the replicatedJobs, which can express the same and more.
	// +optional
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty" protobuf:"bytes,5,opt,name=startupPolicy"`

	// suspend stops the run while it is true: the Jobs exist, suspended and without pods. Absent means false. May be
	// changed at any time; queueing systems use it to admit and to evict the set.
	// +optional
	Suspend *bool `json:"suspend,omitempty" protobuf:"varint,6,opt,name=suspend"`

	// coordinator names the pod that leads the run. Its stable DNS name is put on every Job and pod of the set as the
	// label and annotation jobset.sigs.k8s.io/coordinator. A later change does not reach Jobs that exist already.
	// +optional
	Coordinator *Coordinator `json:"coordinator,omitempty" protobuf:"bytes,7,opt,name=coordinator"`

	// managedBy names the controller that runs the set, as a domain-prefixed path of at most 63 characters. Absent, or
	// jobset.sigs.k8s.io/jobset-controller, means the built-in controller; with any other value the built-in
	// controller touches nothing. Immutable.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty" protobuf:"bytes,8,opt,name=managedBy"`

	// ttlSecondsAfterFinished is the time in seconds after which a finished set is deleted with all that belongs to
	// it. 0 deletes it at once; absent keeps it. May be set or changed after the set has finished.
	// +optional
	// +k8s:validation:minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" protobuf:"varint,9,opt,name=ttlSecondsAfterFinished"`

	// volumeClaimPolicies are groups of persistent volume claims that the controller creates for the set and mounts
	// into the pods that name them. At most 50. Immutable.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=50
	VolumeClaimPolicies []VolumeClaimPolicy `json:"volumeClaimPolicies,omitempty" protobuf:"bytes,10,rep,name=volumeClaimPolicies"`

	// activeDeadlineSeconds is the time in seconds, 1 or more, that an execution of the set may take before the set fails
	// with the reason DeadlineExceeded. It counts from status.startTime: not while the set is suspended, and from zero when the
	// set is resumed or restarted as a whole. Absent means no limit. May be set, changed and removed until the set has
	// finished. Needs the JobSetActiveDeadlineSeconds feature; without it the field is dropped.
	// +optional
	// +k8s:validation:minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"varint,11,opt,name=activeDeadlineSeconds"`

	// scheduling groups the pods of the set for the scheduler of the cluster, for example as a gang: all of its pods get nodes at the same
	// time, or none of them. May be added, changed and removed only while the set is suspended, once the condition Suspended is True. Needs
	// the JobSetWorkloadAwareSchedulingAPI feature; without it the field is rejected. The controller creates the groups
	// with its feature of that name, in clusters that serve Workloads and PodGroups of scheduling.k8s.io.
	// +optional
	Scheduling *JobSetSchedulingConfiguration `json:"scheduling,omitempty" protobuf:"bytes,12,opt,name=scheduling"`
}

// ReplicatedJob is a group of identical Jobs.
type ReplicatedJob struct {
	// name identifies the group within the set and becomes part of the names of its Jobs: <set>-<name>-<index>.
	// Immutable.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// groupName joins replicatedJobs into a named group, which their Jobs are counted in by the group labels.
	// Must be a DNS-1035 label. Defaults to "default". Immutable.
	// +optional
	// +default="default"
	GroupName *string `json:"groupName,omitempty" protobuf:"bytes,2,opt,name=groupName"`

	// template is the Job that is created for every index. Its labels and annotations are copied to the Job; its name,
	// namespace and finalizers are not used. completionMode defaults to Indexed and the pods' restartPolicy to
	// OnFailure when the set is created.
	Template batchv1.JobTemplateSpec `json:"template" protobuf:"bytes,3,opt,name=template"`

	// replicas is the number of Jobs created from the template, 0 or more. Defaults to 1. Immutable.
	// +optional
	// +default=1
	// +k8s:validation:minimum=0
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,4,opt,name=replicas"`

	// dependsOn lists replicatedJobs, all earlier in the list, whose state must be reached before the Jobs of this one
	// are created. All of them must be reached. At most 5; not allowed on the first replicatedJob nor together with
	// an InOrder startupPolicy. Immutable.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +k8s:validation:maxItems=5
	DependsOn []DependsOn `json:"dependsOn,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,5,rep,name=dependsOn"`
}

// DependsOn is the state of one replicatedJob that another one waits for.
type DependsOn struct {
	// name is the name of an earlier replicatedJob of the set.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// status is the state to wait for: Ready or Complete.
	Status DependsOnStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=DependsOnStatus"`
}

// DependsOnStatus is the state of a replicatedJob that another one waits for.
// +enum
type DependsOnStatus string

const (
	// DependencyReady is reached when every Job of the replicatedJob has its pods ready, has succeeded or has failed.
	DependencyReady DependsOnStatus = "Ready"
	// DependencyComplete is reached when every Job of the replicatedJob has succeeded.
	DependencyComplete DependsOnStatus = "Complete"
)

// Network sets how the pods of a set find each other.
type Network struct {
	// enableDNSHostnames gives every pod the stable DNS name
	// <set>-<replicatedJob>-<jobIndex>-<podIndex>.<subdomain> through a headless Service. Defaults to true; false
	// creates no Service.
	// +optional
	EnableDNSHostnames *bool `json:"enableDNSHostnames,omitempty" protobuf:"varint,1,opt,name=enableDNSHostnames"`

	// subdomain is the name of the headless Service and the subdomain of the pods. Must be a DNS-1035 label of at most
	// 63 characters. Absent means the name of the set.
	// +optional
	Subdomain string `json:"subdomain,omitempty" protobuf:"bytes,2,opt,name=subdomain"`

	// publishNotReadyAddresses resolves the DNS names of pods before the pods are ready. Defaults to true.
	// +optional
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty" protobuf:"varint,3,opt,name=publishNotReadyAddresses"`
}

// Coordinator names the pod that leads the run.
type Coordinator struct {
	// replicatedJob is the name of the replicatedJob that the coordinator pod belongs to. Its template must be
	// Indexed, with completions set.
	ReplicatedJob string `json:"replicatedJob" protobuf:"bytes,1,opt,name=replicatedJob"`

	// jobIndex is the index of the Job in its replicatedJob, from 0. Defaults to 0.
	// +optional
	JobIndex int32 `json:"jobIndex" protobuf:"varint,2,opt,name=jobIndex"`

	// podIndex is the completion index of the pod in its Job, from 0. Defaults to 0.
	// +optional
	PodIndex int32 `json:"podIndex" protobuf:"varint,3,opt,name=podIndex"`
}
