// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// applySelfCheck makes the server say what it knows about itself. It comes after everything that adds readiness checks.
func (o *Options) applySelfCheck(config *apiserver.Config, main *clients, embedded bool, objects *unreadable.Objects) {
	checker := &selfcheck.Checker{
		Main: main.kube, Transport: o.Recommended.Etcd.StorageConfig.Transport, Embedded: embedded,
		Unreadable: objects.List, Ready: config.Generic.ReadyzChecks, Gates: features.States(config.Gates),
	}
	if serving := config.Generic.SecureServing; serving != nil {
		checker.Certificate = serving.Cert
	}
	config.SelfCheck = checker
}
