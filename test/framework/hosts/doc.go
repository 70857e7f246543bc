// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosts gives programs of a test addresses of their own, and lets packets between them be lost.
//
// Each host is a network namespace of Linux with a link to a switch, which is one more namespace. This machine has such a link, too.
// No namespace has a name: the test process holds them open, so that they and all their links are gone when it ends, however it ends.
// Packets are lost by rules of iptables in the namespace of the receiver. The rules of this machine are left alone.
package hosts
