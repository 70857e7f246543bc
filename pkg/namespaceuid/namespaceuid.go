// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaceuid says how objects remember in which namespace they were created. Our objects are in a store of their own, so a
// namespace can be deleted and created again while they stay, if the server was away meanwhile. Such an object belongs to no user of the
// new namespace.
package namespaceuid

// Annotation is the UID of the namespace in which the object was created. The server sets it at creation and keeps it,
// whatever a client sends; only to the UID of the present namespace can it be changed, which says that the object
// belongs there. Objects of versions that did not set it lack it.
const Annotation = "jobset-apiserver.io/namespace-uid"

// Condition is True while the controller does nothing for an object that is older than its namespace, except that it can be deleted.
const Condition = "NamespaceRecreated"

// Reasons of the condition.
const (
	// ReasonOlderThanNamespace is the reason of True.
	ReasonOlderThanNamespace = "OlderThanNamespace"
	// ReasonConfirmed is the reason of False: the annotation now names the present namespace.
	ReasonConfirmed = "Confirmed"
)
