// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install adds the leaderworkerset.x-k8s.io group, internal and versioned, to a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Install adds the group to the scheme and states the order of its versions.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(leaderworkerset.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1.SchemeGroupVersion))
}
