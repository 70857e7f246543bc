// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	baseversion "k8s.io/component-base/version"
)

// ComponentName is the name of the program.
const ComponentName = "jobset-apiserver"

// UserAgent names the program and its version in requests to the main API.
func UserAgent() string { return ComponentName + "/" + baseversion.Get().GitVersion }

// kubernetesVersion is the Kubernetes release whose libraries are built in.
func kubernetesVersion() *version.Version {
	return version.MustParse(baseversion.DefaultKubeBinaryVersion)
}

// pinKubernetesVersion keeps the library from taking our version for its own. At start it derives the Kubernetes
// version to emulate from the version stamped into the binary; that of this program is far below the first version of its feature gates
// and CEL functions, and all of them would be off.
func pinKubernetesVersion(gate featuregate.MutableVersionedFeatureGate) error {
	pinned := kubernetesVersion()
	minimum := pinned.SubtractMinor(1)
	if err := gate.SetEmulationVersionAndMinCompatibilityVersion(pinned, minimum); err != nil {
		return fmt.Errorf("setting the version of the feature gates: %w", err)
	}
	effective := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	mutable, ok := effective.(basecompatibility.MutableEffectiveVersion)
	if !ok {
		return fmt.Errorf("setting the version of CEL: effective version is a %T", effective)
	}
	mutable.SetEmulationVersion(pinned)
	mutable.SetMinCompatibilityVersion(minimum)
	return nil
}

// effectiveVersion behaves as the Kubernetes release that is built in and presents itself as what it is.
type effectiveVersion struct {
	basecompatibility.MutableEffectiveVersion
}

// NewEffectiveVersion returns the version that the server presents, and that its libraries emulate.
func NewEffectiveVersion() basecompatibility.MutableEffectiveVersion {
	return effectiveVersion{basecompatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")}
}

// Info is what /version serves: the version of this program, and the Kubernetes version that its libraries emulate.
func (v effectiveVersion) Info() *apimachineryversion.Info {
	info := baseversion.Get()
	emulated := v.EmulationVersion()
	info.EmulationMajor, info.EmulationMinor = version.Itoa(emulated.Major()), version.Itoa(emulated.Minor())
	return &info
}
