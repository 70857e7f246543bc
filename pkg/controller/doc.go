// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller holds what controllers of every kind share: the queue, bounded parallel work, and the memory of
// own writes that informers have not shown yet.
package controller
