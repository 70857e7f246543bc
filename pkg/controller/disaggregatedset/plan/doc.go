// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides about DisaggregatedSets, as pure functions: from a snapshot of a set, of its LeaderWorkerSets,
// Services and scalers to the writes that bring it nearer to what the user wants, and from what became of them to the
// next status and its events.
//
// Objects without a controller that are made like children of the set come first: the set adopts them. A slice waits
// until its LeaderWorkerSets are adopted, since everything else depends on what runs.
//
// A child that the server cannot read is unknown: its slice stays as it is, and no scaler comes or goes. Of a child whose
// metadata cannot be read, either, the slice is not known, so that all slices stay.
//
// A slice that has groups of a former revision is rolled: Next plans one step at a time for all roles together, and a
// step waits until the groups of the step before are ready. The next step depends only on what the LeaderWorkerSets ask
// for, so that nothing is lost in a crash.
package plan
