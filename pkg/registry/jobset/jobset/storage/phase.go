// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/table"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// summary is what the wide columns show.
type summary struct {
	phase, ready, attempt, reason, duration string
}

// summarize derives the wide columns from the object and the time.
func summarize(hub *jobset.JobSet, now time.Time) summary {
	js := actions.Versioned(hub)
	s := helper.Summarize(js)
	return summary{
		phase:    s.Phase,
		ready:    fmt.Sprintf("%d/%d", s.Jobs.Up, s.Jobs.Wanted),
		attempt:  fmt.Sprintf("%d/%d", s.Attempt, s.LastAttempt),
		reason:   s.Reason,
		duration: elapsed(js, now),
	}
}

// elapsed is the time that a set has run, or "" while it is suspended.
func elapsed(js *jobsetv1alpha2.JobSet, now time.Time) string {
	start := js.CreationTimestamp.Time
	if resumed := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended); resumed != nil &&
		resumed.Status == metav1.ConditionFalse {
		start = resumed.LastTransitionTime.Time
	}
	if finished, c := helper.Finished(js); finished != "" {
		if c != nil {
			return table.Duration(c.LastTransitionTime.Sub(start))
		}
		return ""
	}
	if helper.Suspended(js) || start.IsZero() {
		return ""
	}
	return table.Duration(now.Sub(start))
}
