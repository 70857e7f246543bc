// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFaultsOfOneAPIService: each group has an APIService of its own, and the one that is wrong is named.
func TestFaultsOfOneAPIService(t *testing.T) {
	for name, f := range map[string]fault{
		"one APIService with a wrong port": {func(_ *testing.T, i *installation) {
			_ = unstructured.SetNestedField(i.registered[2].Object, int64(9), "spec", "service", "port")
			i.alone(2, "ServicePortError", `service/jobset-apiserver in "jobset-system" is not listening on port 9`)
		}, "service", Fail, "APIService v1.leaderworkerset.x-k8s.io points to port 9, which Service jobset-system/jobset-apiserver does not have",
			`kubectl patch apiservice v1.leaderworkerset.x-k8s.io --type=merge -p '{"spec":{"service":{"namespace":"jobset-system","name":"jobset-apiserver","port":443}}}'`},
		"one APIService is not reached": {func(_ *testing.T, i *installation) {
			i.alone(1, "FailedDiscoveryCheck", "Get \"https://10.96.0.9:443/apis\": dial tcp 10.0.0.7:8443: i/o timeout")
		}, "available", Fail, "kube-apiserver gets no connection to the server of v1alpha1.batch.jobset-apiserver.io: packets are dropped", "get networkpolicies"},
		"one APIService is not available for another reason": {func(_ *testing.T, i *installation) {
			i.alone(2, "FailedDiscoveryCheck", "bad status from https://10.96.0.9:443/apis: 404")
		}, "available", Fail, "v1.leaderworkerset.x-k8s.io: Available is False (FailedDiscoveryCheck): bad status", "kubectl describe apiservice v1.leaderworkerset.x-k8s.io"},
	} {
		t.Run(name, f.check)
	}
}
