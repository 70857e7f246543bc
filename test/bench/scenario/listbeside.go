// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// partKey is the label by which stored sets are selected. It has as many values as partsOfSets.
	partKey     = "jobset-apiserver.io/bench-part"
	partsOfSets = 10
	// largestPage is how many sets "kubectl jobset" reads at a time. Fewer sets than leastPages of these are read in smaller pages.
	largestPage = 500
	leastPages  = 4
)

// listBeside reads the smallest number of sets in the ways that upstream's definition has, too: without protobuf.
func listBeside(ctx context.Context, r *runner) error {
	sets := r.Sizes.Lists[0]
	return r.inSpace(ctx, unwatched, false, func(ctx context.Context, s *space) error {
		if _, err := s.measure(ctx, "store", func(ctx context.Context) error { return s.store(ctx, 0, sets) }); err != nil {
			return err
		}
		for _, way := range waysToList(sets) {
			if err := s.lists(ctx, way.phase, way.options, runtime.ContentTypeJSON, way.sets); err != nil {
				return err
			}
		}
		return nil
	})
}

// wayToList is a list of stored sets.
type wayToList struct {
	phase   string
	options metav1.ListOptions
	// sets is how many sets it has.
	sets int
}

// waysToList are the lists of so many stored sets.
func waysToList(sets int) []wayToList {
	page := max(min(largestPage, sets/leastPages), 1)
	return []wayToList{
		{report.ListWhole, metav1.ListOptions{}, sets},
		{report.ListPaged, metav1.ListOptions{Limit: int64(page)}, sets},
		{report.ListByLabel, metav1.ListOptions{LabelSelector: labels.Set{partKey: "0"}.String()}, (sets + partsOfSets - 1) / partsOfSets},
	}
}

// storedSet is the set with a number. Beside upstream, sets have a label by which some of them are listed.
func (s *space) storedSet(i int) *jobsetv1alpha2.JobSet {
	js := typicalSet(fmt.Sprintf("stored-%05d", i), s.name)
	if s.Beside {
		js.Labels[partKey] = strconv.Itoa(i % partsOfSets)
	}
	return js
}
