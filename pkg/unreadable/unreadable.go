// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unreadable says how clients recognize an object that is in the store, but that the server cannot read: its
// bytes are damaged, a newer version has written it, or the key that encrypted it is gone. Lists and watches have a
// placeholder for such an object, because the garbage collector deletes the children of an owner that lists lack. The
// placeholder has the name of the object and, if its metadata can still be read, its UID, creation time, owners, labels
// and annotations. It has nothing else of the object: its spec and its status are unknown, and not empty.
package unreadable

// Annotation is carried by placeholders alone; its value says why the object cannot be read. The server removes it from other objects.
const Annotation = "jobset-apiserver.io/unreadable"

// Phase is the state of a placeholder in one word, for every kind. Its spec and status say nothing.
const Phase = "Unreadable"

// Annotated is an object with annotations.
type Annotated interface {
	GetAnnotations() map[string]string
}

// Is returns whether an object is a placeholder.
func Is(obj Annotated) bool {
	_, found := obj.GetAnnotations()[Annotation]
	return found
}

// Explain returns why a placeholder is one, in a sentence.
func Explain(obj Annotated) string {
	return "the server cannot read the object in its store: " + obj.GetAnnotations()[Annotation]
}
