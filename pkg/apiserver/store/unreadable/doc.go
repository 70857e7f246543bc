// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unreadable keeps one object that cannot be read from making its whole resource unavailable.
//
// The library ends a list, and a watch of etcd, at the first object that it cannot decrypt or decode, so that the watch
// cache is never filled. Here lists and watches return a placeholder in place of the object; see pkg/unreadable for
// what it has. Leaving the object out is no alternative: clients take what a list lacks for deleted, and the garbage
// collector deletes the children of a deleted owner without asking.
//
// A placeholder never reaches a writer. Requests for the object itself (get, update, patch, actions, delete) are
// answered with an error of code 500 that names the key in etcd, the cause and what to do; it must not be a 404, which
// means to the garbage collector that the owner is gone. Creating an object of the same name is refused as for any
// other existing object.
//
// Transform and codec do this: the transformer knows the key but cannot decode, and the codec decodes but does not know
// the key. So the transformer puts the key in front of what it passes to the codec, if the reader is a list, a watch or
// a get. Updates compare stored bytes and get them as they are.
package unreadable
