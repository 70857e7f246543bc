// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup saves the store of the API server and checks what was saved.
//
// A backup is a snapshot as etcd itself makes it: the database of a member at one revision, followed by its SHA-256 hash. It is
// streamed into an incomplete file, which is checked by its hash, as a database and as a store of etcd, and gets its name only then.
// So a file with the name of a backup is one, whatever ended the process.
package backup
