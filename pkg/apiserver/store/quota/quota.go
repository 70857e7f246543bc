// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota describes how much of its quota a store uses. It is apart from package etcd, so that what guards the space of a store
// does not link an etcd.
package quota

// Usage is how much of its quota a member uses.
type Usage struct {
	// QuotaBytes is the size of the file at which the member refuses writes.
	QuotaBytes int64
	// AllocatedBytes is the size of the file, and InUseBytes the part of it that is not free.
	AllocatedBytes, InUseBytes int64
}
