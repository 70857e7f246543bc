// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mainapi has the clients with which the server reaches kube-apiserver. At the start they wait until it answers; later, requests of
// informers wait while it is away.
package mainapi
