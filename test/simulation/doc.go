// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation holds what simulations of controllers share: dice that make every choice of a history, API servers that count their
// writes, caches that follow them with a delay, requests that may fail, and what runs many histories. Each controller defines what is
// simulated, which rules hold for it, and how users behave.
package simulation
