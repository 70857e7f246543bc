// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storecheck keeps a server from answering for the wrong store. It reads both halves of the witness (package witness)
// before the server serves. Until they agree, everything under /apis is answered with 503, which makes the garbage collector wait.
//
// While the server serves, each answer of etcd and each event of its watches is passed on only after a linearizable read of the key that
// began after the answer. So a store that is swapped behind the same address is noticed before anything that it says gets out:
// a 404, a list without an object, an event of a deletion. The server then never serves again in this process.
//
// Decide of package witness compares the halves, and says whether a store is empty, foreign or rolled back. guard.go has the order: look.go
// reads both halves and does what follows from them, refuse.go and message.go refuse a store and say why, verify.go reads the key again for
// each answer, and supersede.go adds the revisions that clients have seen to an older store that an administrator has accepted.
package storecheck
