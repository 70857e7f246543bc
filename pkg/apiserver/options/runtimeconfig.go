// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/server/resourceconfig"
)

// runtimeConfigAdvice is what to do about a value of the flag that is wrong.
const runtimeConfigAdvice = "use group/version=false, or api/all=false and group/version=true, with groups and versions that this " +
	"server has"

func (o *Options) addRuntimeConfigFlag(fs *pflag.FlagSet) {
	var versions []string
	for _, version := range o.groups.PrioritizedVersionsAllGroups() {
		versions = append(versions, version.String())
	}
	fs.Var(&o.APIEnablement.RuntimeConfig, "runtime-config", "API groups and versions to serve, as pairs key=true|false: "+
		"group/version for one version, group/version/resource for one resource, api/all for all, api/ga, api/beta and "+
		"api/alpha for all versions of that stage. All are served by default, as far as their feature gates are on: "+strings.Join(versions,
		", ")+". "+
		"Delete the APIService of a version that you switch off, otherwise no namespace of the cluster can be deleted.")
}

// validateRuntimeConfig checks the flag, with the merge that is applied later: the library checks less by itself.
func (o *Options) validateRuntimeConfig() error {
	if errs := o.APIEnablement.Validate(o.groups); len(errs) > 0 {
		return wrapFlagError("runtime-config", utilerrors.NewAggregate(errs), runtimeConfigAdvice)
	}
	enabled, err := resourceconfig.MergeAPIResourceConfigs(o.groups.Enabled(), o.APIEnablement.RuntimeConfig, o.groups)
	if err != nil {
		return wrapFlagError("runtime-config", err, runtimeConfigAdvice)
	}
	for key := range o.APIEnablement.RuntimeConfig {
		if parts := strings.Split(key, "/"); len(parts) == 3 && !o.groups.HasResource(parts[0], parts[2]) {
			return wrapFlagError("runtime-config", fmt.Errorf("unknown resource %s", key), runtimeConfigAdvice)
		}
	}
	for version, gate := range o.groups.Off(o.gate) {
		if o.APIEnablement.RuntimeConfig[version.String()] == "true" {
			return flagError("runtime-config", "must not switch on %s while its feature gate is off: use --feature-gates=%s=true, too", version,
				gate)
		}
		enabled.DisableVersions(version)
	}
	if len(o.groups.Served(enabled)) == 0 {
		return flagError("runtime-config", "must leave a resource on: %s", runtimeConfigAdvice)
	}
	return nil
}
