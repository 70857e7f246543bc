// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table prints objects of any kind as the rows of a table.
package table

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Convertor prints objects of type P.
type Convertor[P runtime.Object] struct {
	// Columns are the columns of every row.
	Columns []metav1.TableColumnDefinition
	// Row returns the cells of an object. A nil cell is left blank by kubectl.
	Row func(object P, age string) []any
}

var _ rest.TableConvertor = Convertor[runtime.Object]{}

// ConvertToTable prints one object or a list.
func (c Convertor[P]) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = one.GetResourceVersion()
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = c.Columns
	}
	var err error
	table.Rows, err = metatable.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, _, age string) ([]any, error) {
		typed, ok := obj.(P)
		if !ok {
			return nil, fmt.Errorf("printing a %T: got a %T", typed, obj)
		}
		return c.Row(typed, age), nil
	})
	if err != nil {
		return nil, err
	}
	return table, nil
}

// Text returns a cell that is blank while there is nothing to say.
func Text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Duration prints a duration as kubectl prints ages. Clocks that differ do not make it negative.
func Duration(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }
