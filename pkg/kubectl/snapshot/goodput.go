// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Goodput returns how long all Jobs of the set were ready, and how long it has lived: from its creation to its end, or to now.
func Goodput(js *jobsetv1alpha2.JobSet, now time.Time) (ready, life time.Duration) {
	end := End(js, now)
	ready = time.Duration(js.Status.ReadyMilliseconds) * time.Millisecond
	if last := CurrentAttempt(js); last != nil && last.EndTime == nil && last.ReadyTime != nil {
		ready += max(0, end.Sub(last.ReadyTime.Time))
	}
	life = max(0, end.Sub(js.CreationTimestamp.Time))
	return min(ready, life), life
}
