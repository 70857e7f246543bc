// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package witness recognizes the store of an installation. The garbage collector of a cluster deletes the Jobs of owners that
// answer 404 or have another UID. So a server in front of an empty, foreign or older store must not answer at all.
//
// The witness has two halves. Key is stored in our etcd, and Record in a ConfigMap of the main cluster. Both have the same
// UUID, and the key is never older than the floor of the record. This package has the facts of both halves and decides; it does no I/O.
// See docs/operations/witness.md.
package witness
