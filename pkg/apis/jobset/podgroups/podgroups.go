// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroups derives from the scheduling of a set which groups its pods form for the scheduler of the cluster, and how the objects
// of these groups are named, as values. The server, which checks the groups, and the decisions of the controller, which creates them,
// share it (docs/scheduling.md).
package podgroups

import (
	"crypto/sha1" //nolint:gosec // a name that clients know, not a secret
	"encoding/hex"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
)

const (
	// MaxGroups is the largest number of groups of a set: a Workload has no more templates.
	MaxGroups = 8
	// MaxNameLength is the length of the longest name, in characters.
	MaxNameLength = 63
	hashLength    = 10
)

// Set is what the names of groups are made of.
type Set struct {
	// Namespace and Name identify the JobSet.
	Namespace, Name string
	// Entries say which replicatedJobs are grouped. Each replicatedJob is a target of one of them.
	Entries []Entry
	// Jobs are the replicatedJobs, in the order of the set.
	Jobs []Job
	// Whole means that all pods of the set are one group, and that there is one entry. See Group.
	Whole bool
}

// Entry groups the pods of some replicatedJobs.
type Entry struct {
	// Targets are the names of the replicatedJobs.
	Targets []string
	// PerJob makes a group of each Job of the one target.
	PerJob bool
	// Gang means that the pods of a group start together.
	Gang bool
}

// Job is a replicatedJob.
type Job struct {
	// Name of the replicatedJob.
	Name string
	// Replicas is the number of its Jobs.
	Replicas int32
	// Pods is how many pods of one Job run at the same time.
	Pods int64
	// After are the names of the replicatedJobs that it waits for.
	After []string
}

// PodsAtOnce returns how many pods of a Job run at the same time.
func PodsAtOnce(job *batchv1.JobSpec) int64 {
	pods := ptr.Deref(job.Parallelism, 1)
	if job.Completions != nil {
		pods = min(pods, *job.Completions)
	}
	return int64(max(pods, 0))
}

// Group is a group of pods.
type Group struct {
	// Template is the name of its template in the Workload.
	Template string
	// Name is the name of its PodGroup.
	Name string
	// Entry is the index of the entry that it results from.
	Entry int
	// Job is the index of its only Job in the replicatedJob; -1 if all Jobs of the targets belong to it.
	Job int32
	// Pods is how many pods it has at the same time.
	Pods int64
}

// Group makes the entries of a set that has none of its own: one with all replicatedJobs, or, if they start one after another, one for
// each of them, because a gang starts only once all of its pods exist.
func (s *Set) Group(gang bool) {
	all := make([]string, len(s.Jobs))
	for i := range s.Jobs {
		all[i] = s.Jobs[i].Name
	}
	if s.Whole = !s.Sequenced(); s.Whole {
		s.Entries = []Entry{{Targets: all, Gang: gang}}
		return
	}
	s.Entries = make([]Entry, len(all))
	for i := range all {
		s.Entries[i] = Entry{Targets: all[i : i+1], Gang: gang}
	}
}

// Sequenced returns whether a replicatedJob waits for another one.
func (s *Set) Sequenced() bool {
	for i := range s.Jobs {
		if len(s.Jobs[i].After) > 0 {
			return true
		}
	}
	return false
}

// Pods returns how many pods a group of an entry has at the same time.
func (s Set) Pods(entry int) int64 {
	e, jobs := &s.Entries[entry], s.byName()
	if e.PerJob {
		return jobs[e.Targets[0]].Pods
	}
	return podsOf(e, jobs)
}

// WorkloadName returns the name of the Workload of the set.
func (s Set) WorkloadName() string { return named(s.Name, s.hash()) }

// Count returns the number of groups. It costs little even if there are too many of them.
func (s Set) Count() (n int64) {
	jobs := s.byName()
	for i := range s.Entries {
		e := &s.Entries[i]
		switch {
		case podsOf(e, jobs) == 0:
		case e.PerJob:
			n += int64(jobs[e.Targets[0]].Replicas)
		default:
			n++
		}
	}
	return n
}

// Groups returns the groups in the order of the entries, and of the indexes of Jobs. A group that would have no pods is left out.
// There must be at most MaxGroups of them.
func (s Set) Groups() (out []Group) {
	jobs, hash := s.byName(), s.hash()
	for i := range s.Entries {
		e := &s.Entries[i]
		pods := podsOf(e, jobs)
		switch {
		case pods == 0:
		case e.PerJob:
			job := jobs[e.Targets[0]]
			for index := range job.Replicas {
				out = append(out, s.group(job.Name+"-"+strconv.Itoa(int(index)), hash, i, index, job.Pods))
			}
		case s.Whole:
			name := s.WorkloadName()
			out = append(out, Group{Template: name, Name: name, Entry: i, Job: -1, Pods: pods})
		default:
			out = append(out, s.group(strings.Join(e.Targets, "-"), hash, i, -1, pods))
		}
	}
	return out
}

func (s Set) group(prefix, hash string, entry int, job int32, pods int64) Group {
	return Group{Template: named(prefix, hash), Name: named(s.Name+"-"+prefix, hash), Entry: entry, Job: job, Pods: pods}
}

// Duplicate returns a name that two groups have, as templates or as PodGroups; empty if there is none.
func Duplicate(groups []Group) string {
	for i := range groups {
		for j := range groups[:i] {
			switch {
			case groups[i].Template == groups[j].Template:
				return groups[i].Template
			case groups[i].Name == groups[j].Name:
				return groups[i].Name
			}
		}
	}
	return ""
}

func (s Set) byName() map[string]*Job {
	out := make(map[string]*Job, len(s.Jobs))
	for i := range s.Jobs {
		out[s.Jobs[i].Name] = &s.Jobs[i]
	}
	return out
}

// hash identifies the set, so that sets whose names begin in the same way have different groups.
func (s Set) hash() string {
	sum := sha1.Sum([]byte("JobSet/" + s.Namespace + "/" + s.Name)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])[:hashLength]
}

// named returns the prefix with the hash, which is kept if the name is too long. Names begin and end with a letter or digit.
func named(prefix, hash string) string {
	prefix = strings.TrimLeft(prefix, "-")
	if room := MaxNameLength - hashLength - 1; len(prefix) > room {
		prefix = prefix[:room]
	}
	if prefix == "" {
		return hash
	}
	return prefix + "-" + hash
}

// podsOf returns how many pods the groups of an entry have together.
func podsOf(e *Entry, jobs map[string]*Job) (n int64) {
	for _, target := range e.Targets {
		if job := jobs[target]; job != nil {
			n += int64(job.Replicas) * job.Pods
		}
	}
	return n
}
