// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// mostEvents is how many events are kept and shown: the newest.
const mostEvents = 1000

// Event is one event, as -o json prints it. Its fields are described in docs/kubectl.md.
type Event struct {
	// Time is when it was seen last, and FirstTime when it was seen first.
	Time      metav1.Time `json:"time"`
	FirstTime metav1.Time `json:"firstTime"`
	// Count is how often it was seen.
	Count  int    `json:"count"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Object is the object that it is about, as Kind/name.
	Object  string `json:"object"`
	Message string `json:"message"`
	// Source is the program that reported it.
	Source string `json:"source,omitempty"`
}

// newEvent reads an event of either API, with a count or with a series.
func newEvent(e *corev1.Event) Event {
	out := Event{
		Type: e.Type, Reason: e.Reason, Message: e.Message, Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name,
		Source: cmp.Or(e.ReportingController, e.Source.Component), Count: int(max(e.Count, 1)),
	}
	out.Time = firstSet(e.LastTimestamp, metav1.NewTime(e.EventTime.Time), e.FirstTimestamp, e.CreationTimestamp)
	out.FirstTime = firstSet(e.FirstTimestamp, metav1.NewTime(e.EventTime.Time), out.Time)
	if e.Series != nil {
		out.Count = max(out.Count, int(e.Series.Count))
		out.Time = firstSet(metav1.NewTime(e.Series.LastObservedTime.Time), out.Time)
	}
	return out
}

func firstSet(times ...metav1.Time) metav1.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return metav1.Time{}
}

// byTime sorts events by the time when they were seen last, the newest at the end.
func byTime(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time.Time), a.FirstTime.Compare(b.FirstTime.Time), cmp.Compare(a.Object, b.Object))
	})
}

// newest keeps the newest events, and counts the others.
type newest struct {
	events []Event
	left   int
}

// add keeps an event. Twice as many as are wanted are kept at most.
func (n *newest) add(e Event) {
	if n.events = append(n.events, e); len(n.events) >= 2*mostEvents {
		n.cut()
	}
}

// cut sorts the events and leaves out the oldest.
func (n *newest) cut() {
	byTime(n.events)
	if more := len(n.events) - mostEvents; more > 0 {
		n.left += more
		n.events = slices.Delete(n.events, 0, more)
	}
}

// columns are the columns for humans. Nothing of the message is cut: it stands below the event where there is little room.
var columns = []cli.Column{
	{Title: "LAST SEEN"}, {Title: "TYPE", Drop: 2}, {Title: "REASON"}, {Title: "OBJECT"}, {Title: "MESSAGE", Least: 24, Wrap: true, Drop: 3},
}

func (e *Event) cells(t cli.Terminal, now time.Time) []string {
	seen := cli.Duration(now.Sub(e.Time.Time))
	if e.Count > 1 {
		seen = fmt.Sprintf("%s (x%d over %s)", seen, e.Count, cli.Duration(now.Sub(e.FirstTime.Time)))
	}
	color := cli.Color("")
	if e.Type == corev1.EventTypeWarning {
		color = cli.Busy
	}
	return []string{seen, t.Paint(color, cli.Clean(e.Type)), cli.Clean(e.Reason), cli.Clean(e.Object), cli.Clean(e.Message)}
}
