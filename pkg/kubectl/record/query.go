// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// pageSize is how many runs one answer has at most. The server does not return more either.
const pageSize = 500

// Query selects runs.
type Query struct {
	// Namespace is the namespace of the runs; empty for all.
	Namespace string
	// Labels is a label selector.
	Labels string
	// Fields are the values that fields of the runs must have, by the names of field selectors.
	Fields map[string]string
	// Since leaves out runs that ended before. Zero for all.
	Since time.Time
}

// options are the options of a list without its page.
func (q *Query) options() metav1.ListOptions {
	terms := make([]fields.Selector, 0, len(q.Fields)+1)
	for _, field := range slices.Sorted(maps.Keys(q.Fields)) {
		terms = append(terms, fields.OneTermEqualSelector(field, q.Fields[field]))
	}
	if !q.Since.IsZero() {
		terms = append(terms, fields.OneTermEqualSelector("endedAfter", q.Since.UTC().Format(time.RFC3339)))
	}
	options := metav1.ListOptions{LabelSelector: q.Labels}
	if len(terms) > 0 {
		options.FieldSelector = fields.AndSelectors(terms...).String()
	}
	return options
}

// Pages calls do with each page of the runs, those that ended last first, up to a number of runs; 0 is no limit. It returns whether
// there are more runs than that. No more than one page is in memory.
func (q *Query) Pages(ctx context.Context, c *cli.Clients, limit int, do func([]archivev1alpha1.Run) error) (more bool, err error) {
	options := q.options()
	for left := limit; ; {
		options.Limit = pageSize
		if limit > 0 {
			options.Limit = int64(min(left, pageSize))
		}
		list, err := c.JobSets.ArchiveV1alpha1().Runs(q.Namespace).List(ctx, options)
		if err != nil {
			return false, explain(err)
		}
		runs := list.Items
		if limit > 0 && len(runs) > left {
			runs, more = runs[:left], true
		}
		if err := do(runs); err != nil {
			return false, err
		}
		if left -= len(runs); limit > 0 && left <= 0 {
			return more || list.Continue != "", nil
		}
		if list.Continue == "" {
			return false, nil
		}
		if list.Continue == options.Continue {
			return false, errors.New("the server returned the same page twice; the runs above are not all that match")
		}
		options.Continue = list.Continue
	}
}

// mostSince is the longest time that a user can ask for.
const mostSince = 36500 * day

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// durations are durations with weeks and days before the units of Go.
var durations = regexp.MustCompile(`^(?:([0-9]{1,4})w)?(?:([0-9]{1,5})d)?([0-9].*)?$`)

// Duration reads a duration like 30d, 2w or 1d12h. It is positive.
func Duration(text string) (time.Duration, error) {
	parts := durations.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("must be a duration like 30d, 2w or 12h, not %q", text)
	}
	var sum time.Duration
	for i, unit := range []time.Duration{week, day} {
		if n, err := strconv.Atoi(parts[i+1]); err == nil {
			sum += min(time.Duration(n)*unit, mostSince+1)
		}
		sum = min(sum, mostSince+1)
	}
	if parts[3] != "" {
		rest, err := time.ParseDuration(parts[3])
		if err != nil {
			return 0, fmt.Errorf("must be a duration like 30d, 2w or 12h, not %q", text)
		}
		sum += min(rest, mostSince+1)
	}
	if sum <= 0 || sum > mostSince {
		return 0, fmt.Errorf("must be more than 0 and at most 36500d, not %q", text)
	}
	return sum, nil
}
