// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// MaxNote is the longest note of an event that the events API accepts, in bytes.
const MaxNote = 1024

// usualAction is the action of events that name none.
const usualAction = "Reconciling"

// SendEvent reports something about an object, and about a related one unless that is nil. A note that is too long is truncated.
func SendEvent(recorder events.EventRecorder, regarding, related runtime.Object, event plan.Event) {
	recorder.Eventf(regarding, related, event.Type, event.Reason, cmp.Or(event.Action, usualAction), "%s",
		text.TruncateWithEllipsis(text.Printable(event.Note), MaxNote))
}
