// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdcluster runs an etcd cluster of several members for tests. Members can be stopped, killed, paused, started
// again and cut off from each other: each one reaches the others through a relay of the test, which knows from which member
// a connection comes.
package etcdcluster
