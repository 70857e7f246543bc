// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateNetwork checks an explicit subdomain. The default, the name of the set, is covered by the names of its Jobs.
func validateNetwork(network *jobset.Network, path *field.Path) field.ErrorList {
	if network == nil || network.Subdomain == "" {
		return nil
	}
	subdomain, p := network.Subdomain, path.Child("subdomain")
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(subdomain) {
		errs = append(errs, field.Invalid(p, subdomain, "must be a DNS-1123 subdomain: "+msg))
	}
	if len(subdomain) > MaxNameLength {
		return append(errs, field.Invalid(p, subdomain, fmt.Sprintf("must be no more than %d characters: shorten .spec.network.subdomain, it names a Service", MaxNameLength)))
	}
	for _, msg := range validation.IsDNS1035Label(subdomain) {
		errs = append(errs, field.Invalid(p, subdomain, "must be a DNS-1035 label, it names a Service: "+msg))
	}
	return errs
}
