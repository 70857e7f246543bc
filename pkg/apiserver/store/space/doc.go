// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package space keeps a reserve in the store and in memory, so that what users store never keeps the server from
// starting and a full store can be cleaned.
//
// A full etcd accepts deletions only, and not even those that write first: a deletion in the foreground, a finalizer, the
// compaction of the API server. So creations and changes of spec are refused while there is still space for all
// other writes. Since the server keeps every object in memory, the same holds for memory: objects of a few bytes may take
// many times as much once they are decoded, so a quota in the store does not bound it. Objects share memory with
// watches: neither is accepted when both together leave too little, and a refusal says which of them has more than its part.
package space
