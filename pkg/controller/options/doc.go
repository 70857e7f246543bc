// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options is the command line of jobset-controller, and what it starts: clients, endpoints, leader election and
// the controllers.
package options
