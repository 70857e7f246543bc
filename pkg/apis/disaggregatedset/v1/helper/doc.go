// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helper holds facts about DisaggregatedSets that the controller and other programs share: names and labels of children, and
// revisions.
package helper
