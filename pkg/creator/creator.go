// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package creator says how objects remember who created them. Managed fields name programs, not users, and the audit log is elsewhere.
package creator

// Annotation is the name of the user who created the object. The server sets it at creation and keeps it, whatever a client sends. Objects
// of versions that did not set it lack it.
const Annotation = "jobset-apiserver.io/created-by"

// MaxBytes is the length of the name in the annotation. What is longer is cut.
const MaxBytes = 256
