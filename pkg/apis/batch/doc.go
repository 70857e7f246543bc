// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package batch holds the internal types of the batch.jobset-apiserver.io API: SequentialJobs, PodReadinessGroups, and the
// requests that are created as subresources of objects. Requests are never stored.
//
// +k8s:deepcopy-gen=package
// +groupName=batch.jobset-apiserver.io
package batch
