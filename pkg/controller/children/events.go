// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// MaxNote is the longest note of an event that the events API accepts, in bytes.
const MaxNote = 1024

// eventAction is the action of every event.
const eventAction = "Reconciling"

// SendEvent reports something about an owner. A note that is too long is truncated.
func SendEvent(recorder events.EventRecorder, owner runtime.Object, eventType, reason, note string) {
	recorder.Eventf(owner, nil, eventType, reason, eventAction, "%s", text.TruncateWithEllipsis(text.Printable(note), MaxNote))
}
