// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helper holds the facts about LeaderWorkerSets that the server, its pod webhook, the controllers and the
// plugin share: names of children, keys of revisions and groups, and the values that hold where a field is absent. Each
// fact has its home here, so that all of them say the same.
package helper
