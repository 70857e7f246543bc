// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the wire form of the leaderworkerset.x-k8s.io API: the types, their defaults and their conversion to
// the internal types of package leaderworkerset. It serves every manifest and client written for the upstream
// CustomResourceDefinition of the same group and version.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.x-k8s.leaderworkerset.v1
// +k8s:protobuf-gen=package
// +groupName=leaderworkerset.x-k8s.io
package v1
