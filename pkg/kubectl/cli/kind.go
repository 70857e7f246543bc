// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Kind is a kind of object that commands take.
type Kind struct {
	// Title is the kind, as the API and sentences have it.
	Title string
	// Names are the words for it that kubectl takes: the singular, the plural, and short names.
	Names []string
	// GroupVersion is the group and version of the API that serves it.
	GroupVersion schema.GroupVersion
}

// JobSet is the kind of sets of Jobs.
var JobSet = Kind{Title: "JobSet", Names: []string{"jobset", "jobsets", "js"}, GroupVersion: jobsetv1alpha2.SchemeGroupVersion}

// SequentialJob is the kind of sequences of Jobs and JobSets.
var SequentialJob = Kind{
	Title: "SequentialJob", Names: []string{"sequentialjob", "sequentialjobs", "sqj"}, GroupVersion: batchv1alpha1.SchemeGroupVersion,
}

// LeaderWorkerSet is the kind of groups of a leader and its workers.
var LeaderWorkerSet = Kind{
	Title: "LeaderWorkerSet", Names: []string{"leaderworkerset", "leaderworkersets", "lws"},
	GroupVersion: leaderworkersetv1.SchemeGroupVersion,
}

// DisaggregatedSet is the kind of sets of LeaderWorkerSets for prefill and decode.
var DisaggregatedSet = Kind{
	Title: "DisaggregatedSet", Names: []string{"disaggregatedset", "disaggregatedsets", "dset"},
	GroupVersion: disaggregatedsetv1.SchemeGroupVersion,
}

// Run is the kind of records of the archive. It is not one of Kinds: a plain NAME is never the name of a run.
var Run = Kind{Title: "Run", Names: []string{"run", "runs"}, GroupVersion: archivev1alpha1.SchemeGroupVersion}

// Kinds are all kinds of live objects, in the order in which a plain NAME is looked up.
var Kinds = []Kind{JobSet, SequentialJob, LeaderWorkerSet, DisaggregatedSet}

// Resource returns the resource that holds objects of the kind.
func (k Kind) Resource() schema.GroupVersionResource { return k.GroupVersion.WithResource(k.Names[1]) }

// GroupKind returns the kind with its group.
func (k Kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.GroupVersion.Group, Kind: k.Title}
}

// Qualified returns the name of an object as kubectl prints it.
func (k Kind) Qualified(name string) string {
	return k.Names[0] + "." + k.GroupVersion.Group + "/" + name
}

// Accepts returns whether the word before the slash means the kind: one of its names, also with the group, and with version
// and group.
func (k Kind) Accepts(word string) bool {
	short, qualified, dot := strings.Cut(word, ".")
	if !slices.Contains(k.Names, short) {
		return false
	}
	return !dot || qualified == k.GroupVersion.Group || qualified == k.GroupVersion.Version+"."+k.GroupVersion.Group
}

// For is a kind with what a command does for objects of the kind.
type For[T any] struct {
	Kind
	Do T
}

// is returns whether both are the same kind.
func (k Kind) is(other Kind) bool { return k.Title == other.Title }

// Short returns the shortest word for the kind.
func (k Kind) Short() string { return k.Names[len(k.Names)-1] }
