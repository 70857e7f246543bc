// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collisions warns of objects whose children would have the same names: Jobs of the JobSet "a" and of the
// JobSet "a-b", for example, or the JobSet that a SequentialJob creates for a step and one that exists.
//
// Names of children begin with the name of their owner, so that the owners of a name are found by cutting it at its
// dashes. An object that is found by its labels or by a field, such as another JobSet with the same subdomain, is not
// looked for, because that takes a list of the namespace.
package collisions

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/neighbors"
)

// Find adds a warning for each name that the children of an object share with others.
func Find(neighbors *neighbors.Look, obj runtime.Object) {
	l := &look{neighbors}
	switch obj := obj.(type) {
	case *jobset.JobSet:
		l.jobSet(obj)
	case *batch.SequentialJob:
		l.sequence(obj)
	case *leaderworkerset.LeaderWorkerSet:
		l.leaderWorkerSet(obj)
	case *disaggregatedset.DisaggregatedSet:
		l.disaggregatedSet(obj)
	}
}

// look reads objects of known kinds.
type look struct{ *neighbors.Look }

// jobSetNamed, sequenceNamed and setNamed return the object of the name; nil if there is none.
func (l *look) jobSetNamed(name string) *jobset.JobSet {
	js, _ := l.Read(jobset.Resource("jobsets"), name).(*jobset.JobSet)
	return js
}

func (l *look) sequenceNamed(name string) *batch.SequentialJob {
	sj, _ := l.Read(batch.Resource("sequentialjobs"), name).(*batch.SequentialJob)
	return sj
}

func (l *look) setNamed(name string) *leaderworkerset.LeaderWorkerSet {
	set, _ := l.Read(leaderworkerset.Resource("leaderworkersets"), name).(*leaderworkerset.LeaderWorkerSet)
	return set
}
