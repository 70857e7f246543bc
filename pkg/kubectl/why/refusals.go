// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	uncounted       = regexp.MustCompile(`status unknown for quota: ([^,:]+)[,:] ?(.*)`)
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
		{refusedQuota, uncounted, "quota %s, whose use kube-controller-manager has not counted yet, which takes up to 5 minutes after the kind " +
			"is installed: %s"},
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

// Writes of the controller that the API refuses, whatever they write.

// refusalRepeats is how long after its event a refusal counts of which nothing else shows whether it is over: the
// controller tries again, and reports it again, every two minutes.
const refusalRepeats = 5 * time.Minute

// refusedWrite completes a finding with why the API refuses a write. The command corrects what is invalid.
func (d *diagnosis) refusedWrite(f *Finding, verb, what, message, correct string) {
	r := readRefusal(message)
	switch r.kind {
	case refusedInvalid:
		f.Summary = fmt.Sprintf("the API refuses to %s the %s: %s", verb, what, r.detail)
		f.Commands = append(f.Commands, correct)
	case refusedQuota:
		f.Summary = fmt.Sprintf("a quota refuses the %s: %s", what, r.detail)
		f.Evidence = append(f.Evidence, d.quotaFacts(message)...)
		f.Commands = append(f.Commands, d.kubectl("describe resourcequota"))
	case refusedWebhook:
		f.Summary = fmt.Sprintf("a webhook refuses to %s the %s: %s", verb, what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	case refusedPolicy:
		f.Summary = fmt.Sprintf("an admission policy refuses to %s the %s: %s", verb, what, r.detail)
		f.Commands = append(f.Commands, "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings")
	case refusedRights:
		f.Summary = fmt.Sprintf("the controller has no permission to %s the %s: %s", verb, what, r.detail)
	case undone:
		f.Cause, f.Summary = ChildUndoneByOther, r.detail
	case unanswered:
		f.Cause, f.Summary = RequestFailed, requestFailed(verb, what, r.detail)
	default:
		f.Summary = fmt.Sprintf("the controller cannot %s the %s: %s", verb, what, r.detail)
	}
}

// otherWrites are how the controller of LeaderWorkerSets reports writes of which nothing but the event shows that they fail.
var otherWrites = regexp.MustCompile(`(?s)^Failed to (create|update|delete) (?:the )?` +
	`(status|(?:leader pod|podgroup|statefulset|revision) [^:]+): (.*)$`)

// otherWriteRefused returns the finding about an event that is about such a write; nil for another event. Over means
// that it is too long ago.
func (d *diagnosis) otherWriteRefused(e *corev1.Event) (f *Finding, over bool) {
	m := otherWrites.FindStringSubmatch(e.Message)
	if m == nil {
		return nil, false
	}
	if d.Now.Sub(seen(e)) > refusalRepeats {
		return nil, true
	}
	f = &Finding{
		Cause: StatefulSetRefused, Evidence: []Fact{eventFact(e)},
		Commands: []string{d.kubectl("events --for leaderworkerset/%s --types=Warning", d.Name)},
	}
	d.refusedWrite(f, m[1], strings.TrimSpace(m[2]), m[3], d.kubectl("edit leaderworkerset %s  # correct the template: it is tried again",
		d.Name))
	return f, false
}
