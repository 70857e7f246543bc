// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue_test plays random histories against the watch of Kueue's Workloads.
//
// A history is what happens to the API of Kueue, and to its Workloads: it is not installed, or is served but cannot be
// read; discovery, lists and watches are refused, hang, break or lag; the API is removed and comes back, with or
// without its objects; Workloads are created, changed, deleted and replaced by others of the same name; versions
// expire, watches end, and the process begins again. The watch, its discovery, client and informers are the real ones:
// they run in a bubble of package synctest, and talk to the server of package memory.
//
// Rules are checked after every step (rules_test.go). In the end there is no trouble any more, and the watch must come
// to what is so. Defects that are built in on purpose must break the rules (defects_test.go). What happens follows from
// the seed; pauses of client-go have a random part that does not.
package kueue_test
