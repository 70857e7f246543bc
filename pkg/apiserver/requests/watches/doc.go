// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches bounds the memory of watches. An event that is sent keeps its encoded form, which may have more than
// a megabyte, until the client has taken it. The package counts the bytes of writes that have not returned, of each
// user and in all. When there are too many, it ends the watch of the user whose write has waited longest; so a client
// that reads is not affected by others. The client of an ended watch sees a reset stream or connection, and goes on
// from the last version that it has seen, or lists again.
//
// It also bounds what watches take while they wait. A watch has a fixed size, and so has each connection that has watches, whose
// size counts for one of the accounts that have watches there. Bounds hold for one user, for the service accounts of one namespace, and
// for all; a part of the last is reserved for administrators and controllers of the cluster. See docs/server.md.
package watches
