// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helper holds the facts about SequentialJobs and pod groups that the server, the controllers and the plugin share. Each
// fact has its home here, so that all of them say the same.
package helper
