// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Behind notes that a request is of no use while another one waits, such as the creation of a child that exists and may not get its labels
// back: it waits for as long. err is why, and is returned until then.
func (d *Denials) Behind(owner metav1.Object, what, other Request, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, now, key := d.of(owner), d.clock.Now(), what.key(thisChild)
	if of == nil || of.requests[key] == nil && of.full(what) || len(err.Error()) > maxAnswer {
		return
	}
	if waits := of.waits(other, now); waits != nil {
		of.requests[key] = &denial{err: err, reach: what.reach(err), first: now, last: now, due: waits.due, behind: &other}
	}
}

// dueBehind returns when a request is due that waits for another one.
func (of *denialsOf) dueBehind(known *denial, now time.Time) time.Time {
	if other := of.waits(*known.behind, now); other != nil {
		return other.due
	}
	if known.due.Before(now) {
		return known.due
	}
	return now
}
