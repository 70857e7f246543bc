// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the wire form of the batch.jobset-apiserver.io API: SequentialJobs, PodReadinessGroups, and requests that
// act on objects. A request is created as a subresource of the object that it is about (jobsets/<name>/restart and so on, in
// the group of the object). It is answered with its status filled, and never stored.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.jobset-apiserver.batch.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=batch.jobset-apiserver.io
package v1alpha1
