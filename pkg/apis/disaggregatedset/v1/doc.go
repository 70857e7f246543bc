// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the wire form of the disaggregatedset.x-k8s.io API, which is alpha although its name is v1: the types,
// their defaults and their conversion to the internal types of package disaggregatedset.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1
// +k8s:conversion-gen=github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.x-k8s.disaggregatedset.v1
// +k8s:protobuf-gen=package
// +groupName=disaggregatedset.x-k8s.io
package v1
