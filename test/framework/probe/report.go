// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxErrors is how many different errors of an operation a report has.
const maxErrors = 5

// Report is what a probe has seen.
type Report struct {
	Operations []Operation `json:"operations"`
	// SlowestEvent is the longest time between the acknowledgement of a write and its event.
	SlowestEvent time.Duration `json:"slowestEventNanoseconds"`
	// Watches is how often a watch was begun.
	Watches int `json:"watches"`
	// Relists is how often the watch could not go on after its last event, so that a list had to show what had changed.
	Relists int `json:"relists"`
	// Lost lists acknowledged writes that are not stored, or that the watch has not shown exactly once.
	Lost []string `json:"lost,omitempty"`
}

// Operation is one kind of request.
type Operation struct {
	Name     string `json:"name"`
	Count    int    `json:"count"`
	Failures int    `json:"failures"`
	// Crossed counts the failures of requests that met a GOAWAY on their way. The server has not seen them, but
	// kube-apiserver, which has passed on their body already, cannot send them again.
	Crossed int `json:"crossed"`
	// Refused counts the failures of requests that came to a server when its delay of the shutdown was over. It says when to try
	// again (Retry-After), and has not carried them out. client-go tries again.
	Refused int `json:"refused"`
	// Gap is the longest time without a success.
	Gap time.Duration `json:"gapNanoseconds"`
	// Slowest is the request that took longest and succeeded.
	Slowest time.Duration `json:"slowestNanoseconds"`
	// Errors are some of the failures, with how often they happened.
	Errors map[string]int `json:"errors,omitempty"`
}

// Total returns the sums of the failures of all operations, and the slowest request of all.
func (r *Report) Total() Operation {
	var total Operation
	for i := range r.Operations {
		o := &r.Operations[i]
		total.Failures += o.Failures
		total.Crossed += o.Crossed
		total.Refused += o.Refused
		total.Slowest = max(total.Slowest, o.Slowest)
	}
	return total
}

// String is a table.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %7s %8s %8s %8s %10s %10s\n", "", "count", "failed", "crossed", "refused", "worst gap", "slowest")
	for _, o := range r.Operations {
		fmt.Fprintf(&b, "%-8s %7d %8d %8d %8d %10s %10s\n",
			o.Name, o.Count, o.Failures, o.Crossed, o.Refused, rounded(o.Gap), rounded(o.Slowest))
		for text, count := range o.Errors {
			fmt.Fprintf(&b, "         %d times: %s\n", count, text)
		}
	}
	fmt.Fprintf(&b, "slowest event %s, watches begun %d, relists %d, lost %d", rounded(r.SlowestEvent), r.Watches, r.Relists, len(r.Lost))
	return b.String()
}

func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// report is what has been seen so far.
func (p *Probe) report() *Report {
	report := &Report{SlowestEvent: p.watch.slowest(p.writes.acknowledged())}
	for _, r := range p.recorders {
		report.Operations = append(report.Operations, r.operation())
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	report.Watches, report.Relists = p.watch.streams, p.watch.relists
	return report
}

// recorder keeps what became of the requests of one operation.
type recorder struct {
	name string

	mu   sync.Mutex
	seen Operation
	// success is when the last request succeeded, begun when the latest of those that have succeeded began.
	success, begun time.Time
	ended          bool
}

func (r *recorder) record(begin time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	now := time.Now()
	r.seen.Count++
	if err != nil {
		r.fail(err)
		return
	}
	if !r.success.IsZero() {
		r.seen.Gap = max(r.seen.Gap, now.Sub(r.success))
	}
	r.success = now
	r.seen.Slowest = max(r.seen.Slowest, now.Sub(begin))
	if begin.After(r.begun) {
		r.begun = begin
	}
}

func (r *recorder) fail(err error) {
	r.seen.Failures++
	if r.seen.Errors == nil {
		r.seen.Errors = map[string]int{}
	}
	text := describe(err)
	switch {
	case slices.ContainsFunc(crossings, func(crossing string) bool { return strings.Contains(text, crossing) }):
		r.seen.Crossed++
	case strings.Contains(text, refusal):
		r.seen.Refused++
	}
	if _, known := r.seen.Errors[text]; known || len(r.seen.Errors) < maxErrors {
		r.seen.Errors[text]++
	}
}

// crossings are what kube-apiserver says about a request that met a GOAWAY, depending on how far it was.
var crossings = []string{
	"GOAWAY] after Request.Body was written",
	"cannot rewind body after connection loss",
	"ReverseProxy does an invalid Read on closed Body",
}

// refusal is what a server says about requests that come when its delay of the shutdown is over.
const refusal = "apiserver is shutting down"

// describe returns the message of an error with what the server has sent in place of an object, if it has.
func describe(err error) string {
	text := objectNames.ReplaceAllString(err.Error(), "")
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			text += ": " + cause.Message
		}
	}
	return text
}

// objectNames are the names of objects of the probe, which are no part of an error.
var objectNames = regexp.MustCompile(` ?"?\b(read|create|apply|update|delete)-[0-9]+"?`)

// end keeps what was seen until now.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

func (r *recorder) succeededSince(begin time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun.After(begin)
}

func (r *recorder) operation() Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	seen.Name = r.name
	return seen
}
