// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook answers kube-apiserver when it asks what a pod that is being created must look like (docs/operations/webhook.md).
//
// kube-apiserver sends no credentials unless an administrator configures them for each of its instances. So the path is
// answered before authentication, to anybody: the answer follows from the question alone, and reads and writes nothing.
// What anybody may ask is bounded in size, in time and in number. It needs no store either, and is answered also by a
// server that does not serve its store.
//
// callers.go knows the callers with a certificate. All others share what is left by their addresses: shares.go has the bounds of an
// address and of all together, and receive.go takes a question through them, until queue.go has a turn for its answer. handler.go answers.
package webhook
