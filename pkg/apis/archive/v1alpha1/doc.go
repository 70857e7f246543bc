// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the wire form of the archive.jobset-apiserver.io API: the types, their defaults and their conversion to the
// internal types of package archive.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.jobset-apiserver.archive.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=archive.jobset-apiserver.io
package v1alpha1
