// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// lookAgain is the time after which an owner is looked at again because an API did not know what a cache shows.
const lookAgain = 10 * time.Second

// noteAbsent remembers that an API does not know what a request is about, although a cache shows it. As a rule the watch is about to show
// that it is gone. But the answer is wrong while the API moves to another server, and then no event follows. The lock is held.
func (d *Denials) noteAbsent(owner metav1.Object, what Request, err error) {
	if what.Verb != verbCreate && apierrors.IsNotFound(err) {
		d.absent.Insert(cache.MetaObjectToName(owner))
	}
}

// takeAbsent returns whether an API did not know something in the last sync of an owner, and forgets it.
func (d *Denials) takeAbsent(owner cache.ObjectName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.absent.Has(owner)
	d.absent.Delete(owner)
	return found
}
