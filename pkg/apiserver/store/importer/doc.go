// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer writes objects of a custom resource definition into the store of the server, for a take-over from
// the controller that served them so far. An object keeps what its children and clients know it by: UID, creation time,
// generation, managed fields, status, finalizers and a deletion in progress. Only the resource version is new.
//
// Beside each object it keeps a mark, in the same transaction: the UID and the resource version that were imported. As long as the object
// and the mark have the same revision, no other client has written the object. So an import may be killed at any time and repeated, updates
// what has changed at the source since, and never undoes what the server has done.
package importer
