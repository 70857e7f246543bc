// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// MaxAvoidTime is the longest time for which pods keep off a node.
const MaxAvoidTime = jobset.MaxAvoidTime

// AvoidTime returns for how long the pods of a set keep off a node on which an attempt failed; 0 for not at all. The default
// counts for sets that say nothing, or nothing that has a meaning.
func AvoidTime(js *jobsetv1alpha2.JobSet, byDefault time.Duration) time.Duration {
	if value, set := js.Annotations[jobsetv1alpha2.AvoidFailedNodesKey]; set {
		if d, err := jobset.AvoidTime(value); err == nil {
			return d
		}
	}
	return byDefault
}

// AvoidedReason cuts why a node is avoided to the length that a status holds.
func AvoidedReason(reason string) string {
	return text.Truncate(text.Printable(reason), jobsetv1alpha2.MaxAvoidedReasonBytes)
}

// AvoidedInWords names nodes that pods keep off, until when, and why: a few of them, and the number of the others.
func AvoidedInWords(nodes []jobsetv1alpha2.AvoidedNode) string {
	const named = 3
	var out []string
	for i := range nodes[:min(len(nodes), named)] {
		node := &nodes[i]
		out = append(out, fmt.Sprintf("%s until %s (attempt %d: %s)", node.Name, node.Until.UTC().Format(time.RFC3339), node.Attempt,
			node.Reason))
	}
	text := strings.Join(out, ", ")
	if more := len(nodes) - named; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
