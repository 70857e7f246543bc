// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults runs JobSets of a hundred Jobs on a full control plane while things break: the controller is killed in
// the middle of what it does, our API server restarts, kube-apiserver refuses requests or loses its answers, and leaders
// die. Whatever happens, a set has to end right, every Job is created once for each attempt, and every restart is counted
// once.
//
// The controllers talk to kube-apiserver through a proxy in the test, which knows every request and can break it. So a
// fault is placed at an exact request and not at a time. Where it is placed is chosen at random; -seed repeats a choice.
//
// The control plane is started once for the package in a directory of its own.
package faults
