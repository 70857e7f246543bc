// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install adds the jobset.x-k8s.io group, internal and versioned, to a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Install adds the group to the scheme and states the order of its versions.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(jobset.AddToScheme(scheme))
	utilruntime.Must(v1alpha2.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha2.SchemeGroupVersion))
}
