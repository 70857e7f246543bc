// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views compares what all views say of one fault. The statuses come from the decisions of the controllers, and the rows from the
// tables of the server and from the commands of the plugin, which read the objects over HTTP. The golden file testdata/faults.txt is the
// table of faults, kinds and views.
package views
