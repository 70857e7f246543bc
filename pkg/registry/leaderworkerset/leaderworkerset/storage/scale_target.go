// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/scale"
)

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
