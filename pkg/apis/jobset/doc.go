// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobset holds the internal types of the jobset.x-k8s.io API, which the server's strategies, validation and
// storage work on. They carry no JSON tags: only the versioned types go over the wire or into etcd.
//
// +k8s:deepcopy-gen=package
// +groupName=jobset.x-k8s.io
package jobset
