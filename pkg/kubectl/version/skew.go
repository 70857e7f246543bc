// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// supportedSkew is how many minor versions programs may be apart.
const supportedSkew = 1

// Skew returns warnings about programs that are too far from the server. Versions that are not known, or that are no versions, are left
// out.
func Skew(v *Versions) (warnings []string) {
	server, err := utilversion.ParseGeneric(v.Server)
	if err != nil {
		return nil
	}
	for _, other := range []struct{ name, version string }{{"plugin", v.Client}, {"controller", v.Controller}} {
		of, err := utilversion.ParseGeneric(other.version)
		if err != nil {
			continue
		}
		apart := int64(of.Minor()) - int64(server.Minor())
		if of.Major() != server.Major() || apart > supportedSkew || apart < -supportedSkew {
			warnings = append(warnings, fmt.Sprintf("the %s (%s) and the server (%s) are more than %d minor version apart, which is not supported",
				other.name, other.version, v.Server, supportedSkew))
		}
	}
	return warnings
}
