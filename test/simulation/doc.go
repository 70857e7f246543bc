// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation holds what simulations of controllers share: dice that make every choice of a history, API servers that
// count their writes, caches that follow them with a delay, requests that may come to grief, and what runs many histories.
// What is simulated, by which rules it is judged, and how users behave is that of each controller.
package simulation
