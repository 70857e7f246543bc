// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the wire form of the batch.jobset-apiserver.io API: requests that act on JobSets, each created as a
// subresource of the JobSet it is about (jobsets/<name>/restart and so on, in the group jobset.x-k8s.io). They are
// answered with their status filled, and never stored.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.jobset-apiserver.batch.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=batch.jobset-apiserver.io
package v1alpha1
