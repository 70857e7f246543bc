// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage wires the LeaderWorkerSet resource and its subresources to the generic registry store.
package storage

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/resource"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset"
)

// New returns the storage of leaderworkersets and of their subresources by name, over one store. Lists and watches can select by the
// name and the namespace, as those of a custom resource.
func New(host provider.Host) (map[string]rest.Storage, error) {
	main := strategy.NewStrategy(host.Scheme, host.Now)
	r := resource.Resource{
		Kind: leaderworkerset.Kind("LeaderWorkerSet"), ShortNames: []string{"lws"},
		New:      func() runtime.Object { return &leaderworkerset.LeaderWorkerSet{} },
		NewList:  func() runtime.Object { return &leaderworkerset.LeaderWorkerSetList{} },
		Strategy: main, Status: strategy.NewStatusStrategy(main),
		Table: NewTable(),
	}
	served, store, err := r.Serve(host)
	if err != nil {
		return nil, err
	}
	scaled := *store
	scaled.UpdateStrategy = bounds.UpdateStrategy{RESTUpdateStrategy: strategy.NewScaleStrategy(main)}
	served["leaderworkersets/scale"] = scale.New(&scaled, scaleKind)
	target := action.NewTarget("LeaderWorkerSet", store, strategy.NewActionStrategy(main), host)
	for name, action := range actionsOn(target, host.Revisions) {
		served["leaderworkersets/"+name] = action
	}
	return served, nil
}

// scaleKind is what the scale of a LeaderWorkerSet is: the number of its groups.
var scaleKind = scale.Kind[*leaderworkerset.LeaderWorkerSet]{
	Target: func(lws *leaderworkerset.LeaderWorkerSet) (*scale.Target, error) {
		return &scale.Target{
			Current: lws.Status.Replicas, Selector: lws.Status.HPAPodSelector, Size: lws.Spec.Replicas,
			Set:   func(size int32) { lws.Spec.Replicas = ptr.To(size) },
			Paths: []fieldpath.Path{fieldpath.MakePathOrDie("spec", "replicas")},
		}, nil
	},
	Validate: func(s *autoscalingv1.Scale) field.ErrorList {
		return validation.ValidateReplicas(s.Spec.Replicas, field.NewPath("spec", "replicas"))
	},
	Version: leaderworkersetv1.SchemeGroupVersion,
	Columns: [4]string{
		"name of the LeaderWorkerSet",
		"groups that the set should have",
		"groups that the set has, as last observed",
		"creation time of the LeaderWorkerSet",
	},
}
