// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement_test tests placement with random histories of a small cluster.
//
// A history is what happens to a few sets: they arrive, run, fail, are suspended and finish; nodes are lost and come
// back, other pods come and go, a simulated scheduler binds pods and preempts others, and in some histories an
// autoscaler adds nodes. The host (host_test.go) does what the documentation of package placement asks of it. Rules are
// checked at each placement (rules_test.go). In the end nothing goes wrong any more, and every set must finish.
//
// Everything in a history follows from its seed.
package placement_test
