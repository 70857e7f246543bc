// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

const (
	maxAttempts  = 10
	maxUserBytes = 256
)

// Current returns the newest attempt of a set; nil if none was recorded yet.
func Current(status *jobset.JobSetStatus) *jobset.Attempt {
	if len(status.Attempts) == 0 {
		return nil
	}
	return &status.Attempts[len(status.Attempts)-1]
}

func currentNumber(status *jobset.JobSetStatus) int32 {
	if current := Current(status); current != nil {
		return current.Number
	}
	return 0
}

// following returns the entry that came after the attempt of the number; nil if there is none, or if it was dropped since.
// After 0, which stands for no attempts yet, comes the first that was ever recorded. That of a set from before attempts
// were recorded has another number than 1; so has the first in a full list, before which others may have been.
func following(status *jobset.JobSetStatus, number int32) *jobset.Attempt {
	if number == 0 {
		if n := len(status.Attempts); n == 0 || n == maxAttempts && status.Attempts[0].Number != 1 {
			return nil
		}
		return &status.Attempts[0]
	}
	for i := range status.Attempts {
		if status.Attempts[i].Number == number+1 {
			return &status.Attempts[i]
		}
	}
	return nil
}

// end ends the attempt that runs, and returns it; nil if none does.
func end(status *jobset.JobSetStatus, outcome jobset.AttemptOutcome, now *metav1.MicroTime, user, reason string) *jobset.Attempt {
	entry := Current(status)
	if entry == nil || entry.EndTime != nil {
		return nil
	}
	entry.EndTime, entry.Outcome = now, outcome
	entry.EndUser, entry.EndReason = user, reason
	if entry.ReadyTime != nil {
		status.ReadyMilliseconds += max(now.Sub(entry.ReadyTime.Time).Milliseconds(), 0)
	}
	return entry
}

// begin appends an attempt and returns it. first is its number if it is the first to be recorded.
func begin(status *jobset.JobSetStatus, entry jobset.Attempt, first int32) *jobset.Attempt {
	entry.Number = first
	if current := Current(status); current != nil {
		entry.Number = current.Number + 1
	}
	status.Attempts = append(status.Attempts, entry)
	if n := len(status.Attempts); n > maxAttempts {
		status.Attempts = append([]jobset.Attempt(nil), status.Attempts[n-maxAttempts:]...)
	}
	return Current(status)
}

// cut shortens a text to a number of bytes, between two characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
