// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateNetwork checks an explicit subdomain. The default, the name of the set, is covered by the names of its Jobs.
func validateNetwork(network *jobset.Network, path *field.Path) field.ErrorList {
	if network == nil || network.Subdomain == "" {
		return nil
	}
	return label(path.Child("subdomain"), network.Subdomain, ", because it is the name of a Service")
}
