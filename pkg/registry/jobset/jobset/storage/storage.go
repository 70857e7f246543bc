// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the JobSet resource and its subresources to the generic registry store.
package storage

import (
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// New returns the storage of jobsets and of their subresources by name, over one store.
func New(host provider.Host, gates gates.Gates) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, gates, host.Now)
	r := resource.Resource{
		Kind: jobset.Kind("JobSet"), ShortNames: []string{"js"},
		New: func() runtime.Object { return &jobset.JobSet{} }, NewList: func() runtime.Object { return &jobset.JobSetList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main), Table: NewTable(host.Now), Attributes: attributes,
	}
	served, store, err := r.Serve(host)
	if err != nil {
		return nil, err
	}
	store.BeginCreate = warnOfServices(host.Neighbors)
	served["jobsets/scale"] = scale.New(store, scaleKind(gates.ElasticJobSet))
	actions := strategy.NewActionStrategy(main)
	users := actor{target: action.NewTarget("JobSet", store, actions, host), strategy: actions}
	for name, action := range users.actions() {
		served["jobsets/"+name] = action
	}
	return served, nil
}

// attributes are what lists and watches can select by. An absent suspend counts as false.
var attributes = resource.Attributes(func(js *jobset.JobSet) fields.Set {
	return fields.Set{
		"spec.suspend":         strconv.FormatBool(ptr.Deref(js.Spec.Suspend, false)),
		"status.terminalState": js.Status.TerminalState,
	}
})
