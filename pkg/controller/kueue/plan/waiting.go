// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// maxMessage is the longest message of a Workload that is shown, in bytes.
const maxMessage = 512

// Waiting returns what a Workload waits for, in the words of Kueue; empty if it is admitted, or has ended. It continues a sentence, and
// has no period at its end.
func Waiting(w *Workload) string {
	switch evicted := w.Condition(ConditionEvicted); {
	case w.Is(ConditionFinished):
		return ""
	case !w.Active():
		return fmt.Sprintf("Workload %s is deactivated%s", w.Name, said(w, ConditionEvicted))
	case w.Is(ConditionAdmitted) && !w.Is(ConditionEvicted):
		return ""
	case w.Is(ConditionEvicted) && w.Is(ConditionQuotaReserved):
		return fmt.Sprintf("evicted (%s)%s", evicted.Reason, said(w, ConditionEvicted))
	case w.Is(ConditionEvicted):
		return fmt.Sprintf("%s (evicted before: %s)", pending(w), evicted.Reason)
	case w.Is(ConditionQuotaReserved):
		return "quota is reserved, admission checks are not ready" + checks(w)
	}
	return pending(w)
}

// pending returns why a Workload has no quota.
func pending(w *Workload) string {
	if c := w.Condition(ConditionQuotaReserved); c != nil && c.Message != "" {
		return short(c.Message)
	}
	return fmt.Sprintf("Kueue has not looked at Workload %s yet", w.Name)
}

// said returns the message of a condition, to be added to a sentence.
func said(w *Workload, conditionType string) string {
	c := w.Condition(conditionType)
	if c == nil || c.Message == "" {
		return ""
	}
	return ": " + short(c.Message)
}

// checks returns the admission checks that are not ready, to be added to a sentence.
func checks(w *Workload) string {
	var open []string
	for _, check := range w.Status.AdmissionChecks {
		if check.State == "Ready" {
			continue
		}
		text := check.Name + " is " + check.State
		if check.Message != "" {
			text += " (" + check.Message + ")"
		}
		open = append(open, text)
	}
	if len(open) == 0 {
		return ""
	}
	return ": " + short(strings.Join(open, ", "))
}

// short returns a text in one line that is not longer than allowed.
func short(text string) string {
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
