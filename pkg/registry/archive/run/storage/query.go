// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// Bounds of a query, which keep the statement that the store makes of it small.
const (
	// maxRequirements is the highest number of requirements in a selector.
	maxRequirements = 32
	// maxValues is the highest number of values in a label selector.
	maxValues = 128
	// maxValue is the longest value of a field in bytes. Users have the longest ones: 256 bytes.
	maxValue = 512
	// maxName is the longest name of an object in bytes.
	maxName = 253
	// maxToken is the longest continue token in bytes.
	maxToken = 4096
)

// fieldNamespace is the field selector that the namespace of a query stands for.
const fieldNamespace = "metadata.namespace"

// times are the fields whose values are times.
var times = []archive.Field{archive.FieldBeganAfter, archive.FieldBeganBefore, archive.FieldEndedAfter, archive.FieldEndedBefore}

// newQuery returns what a client asks for in a namespace; empty is for all. If no run can match, it returns that the list is empty.
func newQuery(namespace string, options *internalversion.ListOptions) (query archive.Query, empty bool, err error) {
	query.Namespace = namespace
	if !storable(namespace, maxName) {
		return query, true, nil
	}
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	if err := checkVersion(options.ResourceVersion); err != nil {
		return query, false, err
	}
	if options.Limit < 0 {
		return query, false, bad("limit", "must not be negative, but is %d", options.Limit)
	}
	if len(options.Continue) > maxToken || !utf8.ValidString(options.Continue) {
		return query, false, bad("continue", "must be the token of the page before: list again without it")
	}
	query.Continue = options.Continue
	query.Limit = archive.MaxLimit
	if options.Limit > 0 {
		query.Limit = int(min(options.Limit, archive.MaxLimit))
	}
	if empty, err = selectLabels(&query, options.LabelSelector); empty || err != nil {
		return query, empty, err
	}
	empty, err = selectFields(&query, options.FieldSelector)
	return query, empty, err
}

// checkVersion accepts the resource versions with which clients ask for any state. Others cannot be read: runs have none.
func checkVersion(version string) error {
	if version == "" || version == "0" {
		return nil
	}
	return bad("resourceVersion", "must be empty or 0, because runs have no resource version, not %q", version)
}

// selectLabels adds a label selector to a query.
func selectLabels(query *archive.Query, selector labels.Selector) (empty bool, err error) {
	if selector == nil || selector.Empty() {
		return false, nil
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return true, nil
	}
	if len(requirements) > maxRequirements {
		return false, bad("labelSelector", "must have at most %d requirements, not %d", maxRequirements, len(requirements))
	}
	values := 0
	for _, requirement := range requirements {
		switch requirement.Operator() {
		case selection.GreaterThan, selection.LessThan:
			return false, bad("labelSelector", "must compare label %s with =, !=, in or notin, or ask whether it exists, not with > or <",
				requirement.Key())
		}
		values += len(requirement.ValuesUnsorted())
	}
	if values > maxValues {
		return false, bad("labelSelector", "must have at most %d values, not %d", maxValues, values)
	}
	query.Labels = selector
	return false, nil
}

// selectFields adds a field selector to a query. The names of the fields have been checked before.
func selectFields(query *archive.Query, selector fields.Selector) (empty bool, err error) {
	if selector == nil || selector.Empty() {
		return false, nil
	}
	requirements := selector.Requirements()
	if len(requirements) > maxRequirements {
		return false, bad("fieldSelector", "must have at most %d requirements, not %d", maxRequirements, len(requirements))
	}
	for _, requirement := range requirements {
		if !storable(requirement.Value, maxValue) {
			return false, bad("fieldSelector", "%s must be UTF-8 without NUL, with at most %d bytes", requirement.Field, maxValue)
		}
		wanted := archive.Requirement{
			Field: archive.Field(requirement.Field), Value: requirement.Value, Not: requirement.Operator == selection.NotEquals,
		}
		if err := complete(&wanted); err != nil {
			return false, err
		}
		if wanted.Field == fieldNamespace {
			empty = empty || wanted.Value == "" || query.Namespace != "" && query.Namespace != wanted.Value
			query.Namespace = wanted.Value
			continue
		}
		query.Fields = append(query.Fields, wanted)
	}
	return empty, nil
}

// complete checks a requirement, and gives times one form, so that the same query has the same form.
func complete(wanted *archive.Requirement) error {
	ordered := slices.Contains(times, wanted.Field)
	switch {
	case wanted.Not && (ordered || wanted.Field == fieldNamespace):
		return bad("fieldSelector", "%s must not be compared with !=", wanted.Field)
	case ordered:
		at, err := time.Parse(time.RFC3339, wanted.Value)
		if err != nil {
			return bad("fieldSelector", "%s must be a time such as 2026-01-31T23:59:00Z, not %q", wanted.Field, wanted.Value)
		}
		wanted.Value = at.UTC().Format(time.RFC3339Nano)
	case wanted.Field == archive.FieldState && !isState(wanted.Value):
		return bad("fieldSelector", "state must be %s, %s, %s or %s, not %q", api.RunCompleted, api.RunFailed, api.RunCancelled, api.RunDeleted,
			wanted.Value)
	}
	return nil
}

func isState(value string) bool {
	return slices.Contains([]api.RunState{api.RunCompleted, api.RunFailed, api.RunCancelled, api.RunDeleted}, api.RunState(value))
}

// storable returns whether a database can compare its texts with the value.
func storable(value string, most int) bool {
	return len(value) <= most && utf8.ValidString(value) && !strings.ContainsRune(value, 0)
}

// bad is the answer to a query that the server does not understand.
func bad(parameter, format string, values ...any) error {
	return apierrors.NewBadRequest(parameter + ": " + fmt.Sprintf(format, values...))
}
