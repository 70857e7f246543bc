// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install adds the archive.jobset-apiserver.io group, internal and versioned, to a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
)

// Install adds the group to the scheme and states the order of its versions.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(archive.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
}
