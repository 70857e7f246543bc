// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archivesql keeps archived runs in SQLite or PostgreSQL.
//
// Both databases have the same tables and statements; a dialect is what differs. A row of archive_runs has the columns that a person who
// looks into the database wants to see, and the record: the run without its details, as compressed JSON of the version v1alpha1. The
// details are in archive_details, so that lists never read them.
//
// Everything that selects runs is a term: a field and a value, or a label and its value, within one namespace or in all. archive_terms is
// an inverted index: for each term it has the runs that match, sorted by when they ended. A term is stored as a hash, so values of any size
// and content are stored and found in the same way in both databases. A query reads the runs of one term, newest first, and looks up the
// other terms for each of them. A query that is answered by several terms, such as a label with one of three values, merges what it reads
// for each. So every filter alone reads little more than what it returns, whatever the number of runs.
//
// Runs that began before a time need more: the term is a class of durations. A run of a class that began before the time ended before the
// time plus the longest duration of the class, so each class is a range as well.
//
// Writers of all servers take turns: each transaction that writes takes a lock of the database first. So what it reads stays true until it
// commits. A client that deletes a run leaves a tombstone, and retention leaves a floor: runs that ended at the floor or before it are not
// stored again.
package archivesql
