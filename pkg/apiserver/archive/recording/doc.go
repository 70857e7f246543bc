// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording records runs in the archive. It knows no kind: the kinds describe their runs.
//
// A run that ends while its object stays is queued in memory after the write that ended it. The queue is bounded, and no request waits for
// it. A sweep finds what does not fit: at the start and from time to time, it asks the archive for the runs of all objects that have ended.
//
// A run that is about to be lost is written to the outbox first: the object is removed, or is retried and begins another execution. The
// writes happen inside the conditional delete or update of the store, with the very object that is removed or replaced, so that the outbox
// has the run whenever the removal succeeds. A removal that fails leaves an entry that is dropped later. Runs that are known to be stored
// need no entry.
//
// Each server drains the outbox. The archive takes a run twice without harm, because the UID of the object and the number of the execution
// are the key, and an entry is deleted only if it is still the one that was stored.
//
// Nothing here refuses a request, or delays one for longer than a write to the outbox may take, whatever happens to the archive.
package recording
