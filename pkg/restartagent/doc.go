// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restartagent is the agent of in-place restarts (docs/reference/jobset.md#restart-agent). It runs beside the
// worker of a pod, as a sidecar, or in the container of the worker, as its parent.
//
// The agent watches its JobSet. The attempt of a process is decided by the first state of the set that it reads: 0 if
// the pods of the set have not begun together yet, and otherwise the one after the attempt that all of them have
// reached. The agent writes it once, as an annotation of its pod. When the status of the set says that all pods have
// reached the attempt, the agent lifts its barrier, and the worker begins. When the status says that the attempt is
// over, the agent exits, and kubelet restarts the containers of the pod. The next process has the next attempt.
//
// Two things keep a barrier from being lifted too soon. The first state comes from a consistent read: a stale one could
// give the pod an attempt that the others have already reached. And what is known never goes back: while no server
// answers, the agent keeps its state and tries again. A set that the server cannot read counts as one for which no
// server answers: the placeholder has no failure policy, which must not be taken for a set whose pods do not wait.
//
// kubelet starts the containers of a pod again at once when a rule restarts all of them. So the agent of a sidecar
// holds its barrier for a time that grows with the number of restarts in short succession, as kubelet does for single
// containers.
package restartagent
