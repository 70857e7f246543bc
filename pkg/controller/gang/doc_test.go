// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang_test plays random histories against the watch of groups of pods.
//
// A history is what happens to the API of a scheduler, and to its objects: versions of it are served, not served, or
// lack a kind, also for a moment; discovery, lists and watches are refused, hang, break or lag; objects are created,
// changed, deleted and replaced by others of the same name; callers need them, or do not; the process begins again. The
// watch, its discovery, client and informers are the real ones: they run in a bubble of package synctest, and talk to
// the server of package memory.
//
// Rules are checked after every step (rules_test.go). In the end there is no trouble any more, and the watch must come
// to what is so. Defects that are built in on purpose must break the rules (defects_test.go). What happens follows from
// the seed; pauses of client-go have a random part that does not.
package gang_test
