// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan holds the values that the plans of several kinds share.
package plan

import "k8s.io/apimachinery/pkg/types"

// Event is an event about an owner.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is in PascalCase.
	Reason string
	// Action is what was done, like Create, Update or Delete; empty for the usual action.
	Action string
	// Note is a sentence for humans.
	Note string
	// Related is the name of another object that the event is about too; empty for none. Events about different ones do
	// not belong to one series.
	Related string
}

// Ref names one incarnation of an object in the namespace of its owner.
type Ref struct {
	// Name of the object.
	Name string
	// UID of the object.
	UID types.UID
}
