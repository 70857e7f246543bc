// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failures finds out why Jobs fail, for all kinds that run Jobs. A Store remembers what the watch of pods has shown of
// their failures, also when the pods are gone; a Reader asks it, and reads pods from the API only if it does not know. Pod is
// the small part of a pod that the cache keeps for that, and for pods that find no node.
package failures
