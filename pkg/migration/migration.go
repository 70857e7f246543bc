// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration describes the API through which an administrator moves objects of custom resource definitions into the
// store of jobset-apiserver, with their UIDs. The server answers it while it refuses its store because of such objects, and
// whether or not kube-apiserver routes their groups to it: it is a group of its own, which kube-apiserver routes to the server
// only while a migration lasts. docs/reference/migration.md describes it.
package migration

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Group is the name of the group.
	Group = "migration.jobset-apiserver.io"
	// Version is its only version.
	Version = "v1alpha1"
)

// GroupVersion is the version of the group.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// Path is the path of the group.
const Path = "/apis/" + Group

// Covers returns whether a path is below the path of the group.
func Covers(path string) bool { return path == Path || strings.HasPrefix(path, Path+"/") }

// Resources of the group. None of them is stored.
const (
	// Imports are created to write objects into the store.
	Imports = "imports"
	// Inventories are read to see what the store has. The name of an inventory is the name of a custom resource definition,
	// <resource>.<group>.
	Inventories = "inventories"
)

// Kinds of the resources.
const (
	KindImport    = "Import"
	KindInventory = "Inventory"
)

const (
	// MaxObjects is how many objects an import may have, with those that it removes.
	MaxObjects = 100
	// MaxBytes is how many bytes the body of an import may have.
	MaxBytes = 16 << 20
	// PageSize is how many objects a page of an inventory has at most. The server reads all of them to make it.
	PageSize = 50
)

// Verdict is what became of an object.
type Verdict string

// Verdicts.
const (
	// Created: the store did not have the object.
	Created Verdict = "Created"
	// Updated: the object has changed at its source since it was imported.
	Updated Verdict = "Updated"
	// Removed: the object was imported, and its source does not have it any more.
	Removed Verdict = "Removed"
	// Unchanged: the store has the same object, or, as asked for, none.
	Unchanged Verdict = "Unchanged"
	// Rejected: this version does not accept the object, or would lose a part of it.
	Rejected Verdict = "Rejected"
	// Conflict: the store has another object of this name, or jobset-apiserver has written it since it was imported. The
	// store is right.
	Conflict Verdict = "Conflict"
	// Failed: the store could not be read or written. The import may be repeated.
	Failed Verdict = "Failed"
)

// Import writes objects into the store as they are: with UID, creation time, generation, managed fields, finalizers, owner
// references, labels, annotations and status. An object that is not accepted keeps no other one from being written. It may
// be repeated.
type Import struct {
	metav1.TypeMeta `json:",inline"`

	Spec   ImportSpec   `json:"spec"`
	Status ImportStatus `json:"status"`
}

// ImportSpec is what is asked for.
type ImportSpec struct {
	// DryRun writes nothing: the status has what would become of the objects. Objects that are equal in the store are Unchanged.
	DryRun bool `json:"dryRun,omitempty"`
	// DropUnknownFields imports objects without the fields that this version does not know. Without it, such objects are rejected.
	DropUnknownFields bool `json:"dropUnknownFields,omitempty"`
	// Force makes the objects right whatever the store has under their names, and removes objects that jobset-apiserver has written.
	// It is for a group that kube-apiserver does not forward to jobset-apiserver: what the store has of it is not served to anybody,
	// and is left from a time in which it was.
	Force bool `json:"force,omitempty"`
	// Objects are the objects as the custom resource definition serves them.
	Objects []json.RawMessage `json:"objects,omitempty"`
	// Removed are objects that were imported, and that their source does not have any more. There must be at least one of both, and
	// at most 100.
	Removed []Reference `json:"removed,omitempty"`
}

// Reference names an object.
type Reference struct {
	// Resource is <resource>.<group>.
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// ImportStatus is what has happened.
type ImportStatus struct {
	// Results are in the order of the objects, then in the order of those that are removed.
	Results []Result `json:"results"`
}

// Result is what became of an object.
type Result struct {
	// Resource is <resource>.<group>. It is empty, as Namespace and Name are, if the object does not have them.
	Resource  string    `json:"resource,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Verdict   Verdict   `json:"verdict"`
	// Message says why the object was not imported.
	Message string `json:"message,omitempty"`
	// Hash identifies the object as this version stores it. It is empty for an object that was rejected or is to be removed.
	Hash string `json:"hash,omitempty"`
}

// Inventory is a page of the objects of a resource that are in the store, in the order of their names.
type Inventory struct {
	metav1.TypeMeta `json:",inline"`

	// Items are the objects.
	Items []Item `json:"items"`
	// Continue is the query parameter "continue" for the next page; empty for the last one.
	Continue string `json:"continue,omitempty"`
}

// Item is an object in the store.
type Item struct {
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Hash is equal to the hash in the result of an import if the objects are equal.
	Hash string `json:"hash"`
}
