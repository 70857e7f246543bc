// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// written remembers what this process has written, so that objects which have not changed since are not written again while writes
// of users are refused.
type written struct {
	mu sync.Mutex
	// versions are the resource versions in jobset-apiserver and in the CustomResourceDefinition, by UID in the former.
	versions map[types.UID][2]string
}

func (w *written) note(from, to *custom) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.UID][2]string{}
	}
	w.versions[from.GetUID()] = [2]string{from.GetResourceVersion(), to.GetResourceVersion()}
}

// has returns whether both objects are as they were when one was written over the other.
func (w *written) has(from, to *custom) bool {
	if w == nil || to == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[from.GetUID()] == [2]string{from.GetResourceVersion(), to.GetResourceVersion()}
}
