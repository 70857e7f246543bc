// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestGroupsOfPodsFollowFromFlags(t *testing.T) {
	for flag, want := range map[string]bool{
		"--gang-scheduling-provider=volcano": true, "--feature-gates=A=true,JobSetWorkloadAwareSchedulingAPI=true": true,
		"--feature-gates=JobSetWorkloadAwareSchedulingAPI=false": false, "--v=2": false,
	} {
		p := &inspection{controllers: []corev1.Pod{{}, {Spec: corev1.PodSpec{Containers: []corev1.Container{{}, {Args: []string{"--v=2", flag}}}}}}}
		if got := p.makesPodGroups(); got != want {
			t.Errorf("%s: %t", flag, got)
		}
	}
}

// TestPermissionsForLeaderWorkerSetsFollowFromTheirServer has them left to another controller.
func TestPermissionsForLeaderWorkerSetsFollowFromTheirServer(t *testing.T) {
	aggregated := service(cli.LeaderWorkerSet, "True", "Passed", "")
	local := aggregated.DeepCopy()
	unstructured.RemoveNestedField(local.Object, "spec", "service")
	for name, c := range map[string]struct {
		cluster cluster
		want    bool
	}{
		"jobset-apiserver serves them":   {cluster{services: []runtime.Object{aggregated}}, true},
		"custom resources":               {cluster{services: []runtime.Object{local}}, false},
		"nobody serves them":             {cluster{}, false},
		"APIServices that are not known": {cluster{refused: map[string]error{"apiservices": errors.New("broken")}}, true},
	} {
		if got := read(t.Context(), c.cluster.clients(), c.cluster.get, now).servesLeaderWorkerSets(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// lacksEndpoints is a controller with flags, and without the permission to write addresses.
func lacksEndpoints(flags ...string) fault {
	return fault{func(_ *testing.T, i *installation) {
		i.manager.Spec.Containers[0].Args = flags
		i.denied = []string{"create endpointslices.discovery.k8s.io"}
	}, "controller-rights", Fail, "lacks 1 permission of its manifests: create endpointslices.discovery.k8s.io", applyRoles}
}
