// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbox keeps runs in the etcd of the server until the archive has them. An object that is about to be removed leaves its run here
// first, because the archive is a database of its own, which may be away, and nothing else has the run once the object is gone.
//
// Entries are below the prefix of the server, beside the API groups, one for each run. They are never served. The number of entries and
// their bytes are bounded, so that an archive that is away for days does not fill etcd.
//
// The value of an entry begins with a line of JSON, which says what the entry is about. What follows is the run as JSON, compressed with
// gzip, and then encrypted in the way in which the objects of its resource are.
package outbox
