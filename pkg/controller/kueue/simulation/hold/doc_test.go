// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold plays random histories against the quota that SequentialJobs hold for all of their steps.
//
// A history is what happens to one sequence and to its Workload: a simulated Kueue admits, evicts and deactivates it,
// and its API is absent, unreadable, removed and installed again; pods of Jobs begin, end and take their time to stop;
// users create, suspend, resume and delete the sequence; requests are refused, lost, or arrive late; caches lag; the
// controller begins again. The controller is the real one as a whole, with its informers, its queue and its pace: it
// runs in a bubble of package synctest, and talks to the server of package memory.
package hold
