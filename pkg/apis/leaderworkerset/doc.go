// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderworkerset holds the internal types of the leaderworkerset.x-k8s.io API.
//
// +k8s:deepcopy-gen=package
// +groupName=leaderworkerset.x-k8s.io
package leaderworkerset
