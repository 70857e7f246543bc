// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disaggregatedset holds the internal types of the disaggregatedset.x-k8s.io API.
//
// +k8s:deepcopy-gen=package
// +groupName=disaggregatedset.x-k8s.io
package disaggregatedset
