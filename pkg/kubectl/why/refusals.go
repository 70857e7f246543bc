// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"
)

// What the API says when it does not take a write.

// refusal is what an API said to a creation.
type refusal struct {
	kind   refusalKind
	detail string
}

type refusalKind int

const (
	refusedOther refusalKind = iota
	refusedInvalid
	refusedQuota
	refusedWebhook
	refusedPolicy
	refusedSecurity
	refusedRights
	// unanswered means that the API took no decision: it is away, overloaded or too slow.
	unanswered
	// undone means that the API was not asked: another party undoes each such write.
	undone
)

var (
	invalidMessage  = regexp.MustCompile(`is invalid: \[?([^:\s]+): (.*)`)
	quotaMessage    = regexp.MustCompile(`(?:exceeded|failed) quota: ([^,:]+)[,:] ?(.*)`)
	webhookMessage  = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: (.*))?`)
	webhookFailure  = regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)`)
	policyMessage   = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'.* denied request(?:: (.*))?`)
	securityMessage = regexp.MustCompile(`violates PodSecurity "([^"]+)"(?:: (.*))?`)
	rightsMessage   = regexp.MustCompile(`User "([^"]+)" cannot (.*)`)
	undoneMessage   = regexp.MustCompile(`([^:]* (?:was deleted|removed or changed [^:]*) ` +
		`[0-9]+ times within a minute, each time after the controller had .*)`)
	noAnswer = regexp.MustCompile(`(currently unable to handle the request|unable to return a response|` +
		`too many requests|please try again later|timed out|timeout|deadline exceeded` +
		`|connection (?:refused|reset)|connection lost|no leader|leader changed|unexpected EOF|EOF$)`)
)

// readRefusal takes the message of an API apart.
func readRefusal(message string) refusal {
	message = oneLine(message)
	if m := undoneMessage.FindString(message); m != "" {
		return refusal{undone, strings.TrimSpace(m)}
	}
	for _, form := range []struct {
		kind    refusalKind
		message *regexp.Regexp
		words   string
	}{
		{refusedSecurity, securityMessage, "pod security %q: %s"},
		{refusedQuota, quotaMessage, "quota %s: %s"},
		{refusedWebhook, webhookMessage, "webhook %s: %s"},
		{refusedWebhook, webhookFailure, "webhook %s, which could not be called: %s"},
		{refusedPolicy, policyMessage, "policy %s: %s"},
		{refusedInvalid, invalidMessage, "%s: %s"},
		{refusedRights, rightsMessage, "user %s cannot %s"},
	} {
		if m := form.message.FindStringSubmatch(message); m != nil {
			return refusal{form.kind, strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf(form.words, m[1], m[2]), "]"), ": ")}
		}
	}
	if noAnswer.MatchString(message) {
		return refusal{unanswered, message}
	}
	return refusal{refusedOther, message}
}
