// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert makes certificate authorities and serving certificates for servers that are given none. Both are kept in a directory,
// which belongs to one server, or in a Secret, which all servers of an installation share. With a Secret, the servers also make
// kube-apiserver trust the authority.
//
// All servers read and write the Secret with optimistic locking: one of several writers wins, and
// the others take what it wrote. The manifests create the Secret without content, because a permission to create
// objects cannot be limited by name.
//
// One pass reads the Secret, plans what has to change (a pure function of the content and the time), writes it, serves
// with it, and writes the certificates of the authorities into the caBundle of the APIServices and webhooks. A pass
// follows every change of these objects, and one is made each minute.
//
// An authority is replaced in steps: a second one is made and goes into the caBundles. When all of them have had it for
// a while, it signs a new serving certificate. The first one stays in the caBundles until no server can serve with a
// certificate of it. So at every moment, a client with the current caBundle trusts the certificate that is served.
package servingcert
