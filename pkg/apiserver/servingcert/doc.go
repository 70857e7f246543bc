// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert knows the certificate with which the server serves.
package servingcert
