// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// OlderThan returns whether a control plane is older than a version of Kubernetes, such as v1.36.0.
func OlderThan(t testing.TB, client discovery.ServerVersionInterface, other string) bool {
	t.Helper()
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.MustParse(info.GitVersion).LessThan(version.MustParse(other))
}
