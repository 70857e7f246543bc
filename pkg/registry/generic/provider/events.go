// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxNote is the longest note that the events API accepts, in bytes.
const maxNote = 1024

// Recorder records every action that changed an object, after the change was stored. It must not block.
type Recorder interface {
	Record(event Event)
}

// Event describes one action of a user.
type Event struct {
	// Regarding is the object that changed.
	Regarding corev1.ObjectReference
	// Action is the name of the subresource.
	Action string
	// Reason is the reason of the event.
	Reason string
	// Note says who asked for what, and why.
	Note string
	// Warning says that a user should look at it.
	Warning bool
}

// EventNote joins the parts of a note to one line within the limit of the API. A reason that is too long is cut: the other
// parts are short and say more.
func EventNote(head, reason, tail string) string {
	reason = strings.Join(strings.Fields(reason), " ")
	if reason == "" {
		return head + tail
	}
	head += ": "
	return head + text.TruncateWithEllipsis(reason, maxNote-len(head)-len(tail)) + tail
}
