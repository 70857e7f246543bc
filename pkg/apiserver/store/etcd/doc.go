// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd runs the store of the API server inside the process: one etcd member whose data directory no other process uses and that no
// other user can reach.
//
// It listens on a unix socket in its data directory, which only the owner may enter (mode 0700), and on nothing else. Loopback TCP would
// let every local user and, in a pod with host networking, every workload of the node connect; protecting it would take
// certificates, a free port and their upkeep. A socket in a private directory needs none of these, and operators still
// reach it with etcdctl and --endpoints=unix://<data-dir>/client.sock.
//
// A member of a cluster also listens on two TCP ports, for the other members and for their servers. Both need a certificate of an authority
// that only the servers of the installation can use.
//
// The leader passes its role on before it ends or defragments its database. It drops the writes that followers send to it meanwhile, and
// followers do not learn of it. So it asks all members before to hold new writes of their clients until they know the next leader, and to
// answer when those under way have ended.
package etcd
