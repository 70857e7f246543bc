// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history proves or refutes that an API server keeps its promises: clients write and read a few JobSets that they fight over,
// record what they asked, when, and what they were answered, and the record is checked afterwards.
//
// Run drives the clients and watchers against any server and returns a History. Check compares it with these rules:
//
//   - Every object is a register with create, update, delete and read, whose resourceVersion is the version of its content. Its
//     operations must be linearizable, which porcupine decides. A list is a read of every object.
//   - A request without a certain answer (a timeout, a broken connection, an answer of 500 or more) may have happened at any time
//     after it was sent, or never.
//   - All answers and events must fit on one time line, in which a resourceVersion names one change of one object. What was
//     acknowledged before another request began has the lower version.
//   - A list shows all objects as they were at its own resourceVersion.
//   - A watcher sees every change between its start and its end once and in order, also when it had to connect again.
//
// Choices of clients come from a seed, so that a run can be repeated; the timing cannot.
package history
