// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callers finds out who sends a request, through kube-apiserver or directly, and what they may do. It bounds how many questions
// about callers the server sends to the main API: these come before priority and fairness. Callers that have to wait do so in a Line.
package callers
