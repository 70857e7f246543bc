// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive holds the internal types of the archive.jobset-apiserver.io API.
//
// +k8s:deepcopy-gen=package
// +groupName=archive.jobset-apiserver.io
package archive
