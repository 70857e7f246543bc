// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bucket keeps backups in a bucket of an S3-compatible object storage.
//
// A backup is uploaded from a file that was verified. An object appears in a bucket when all of it has arrived, and never in part, so an
// object with the name of a backup is one. Credentials come from files or from the environment, in the ways of the AWS SDKs; they are
// read when a bucket is opened, so that a Secret can change while the server runs.
package bucket
