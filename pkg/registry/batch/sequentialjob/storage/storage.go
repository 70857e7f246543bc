// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the SequentialJob resource and its subresources to the generic registry store.
package storage

import (
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
)

// New returns the storage of sequentialjobs and of their subresources by name, over one store. The gates apply to JobSets, which can be
// steps.
func New(host provider.Host, gates gates.Gates) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, gates, host.Now)
	r := resource.Resource{
		Kind: batch.Kind("SequentialJob"), ShortNames: []string{"sqj"}, Categories: []string{"all"},
		New: func() runtime.Object { return &batch.SequentialJob{} }, NewList: func() runtime.Object { return &batch.SequentialJobList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main), Table: NewTable(host.Now), Attributes: attributes,
	}
	served, store, err := r.Serve(host)
	if err != nil {
		return nil, err
	}
	target := action.NewTarget("SequentialJob", store, strategy.NewActionStrategy(main), host)
	for name, action := range actionsOn(target) {
		served["sequentialjobs/"+name] = action
	}
	return served, nil
}

// attributes are what lists and watches can select by. An absent suspend counts as false.
var attributes = resource.Attributes(func(sj *batch.SequentialJob) fields.Set {
	return fields.Set{
		"spec.suspend": strconv.FormatBool(ptr.Deref(sj.Spec.Suspend, false)),
		"status.phase": string(sj.Status.Phase),
	}
})
