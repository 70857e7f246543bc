// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestHealthyClusterHasNothingToRepair(t *testing.T) {
	report := healthy(t).built(t).examine(t.Context())
	for _, result := range report.Checks {
		if result.Status != OK || result.Fix != "" {
			t.Errorf("%+v", result)
		}
	}
	if report.Status != OK || report.FirstBroken != "" {
		t.Errorf("status %s, first broken %q", report.Status, report.FirstBroken)
	}
}

// fault is something that is wrong with an installation, and what the doctor says about it.
type fault struct {
	seed func(t *testing.T, i *installation)
	// hop is the check that names it, with the status; a failure is the first broken hop.
	hop     string
	status  Status
	message string
	fix     string
}

func waiting(reason, message string) func(*testing.T, *installation) {
	return func(_ *testing.T, i *installation) {
		i.withoutSlice = true
		i.unavailable("MissingEndpoints", "endpoints for service/jobset-apiserver in \"jobset-system\" have no addresses with port name \"https\"")
		i.server.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "apiserver", Image: "registry/jobset-apiserver:v9", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
}

// unreadyServer makes the pod of the server not ready.
func unreadyServer(i *installation) {
	i.withoutSlice = true
	i.unavailable("MissingEndpoints", "no addresses")
	i.server.Status.Conditions[0].Status = corev1.ConditionFalse
}

func (f fault) check(t *testing.T) {
	i := healthy(t)
	f.seed(t, i)
	report := i.built(t).examine(t.Context())
	for _, result := range report.Checks {
		if result.Name != f.hop {
			continue
		}
		if result.Status != f.status || !strings.Contains(result.Message, f.message) || !strings.Contains(result.Fix, f.fix) {
			t.Errorf("got %s: %s\nfix: %s\nwant %s: %s\nfix: %s", result.Status, result.Message, result.Fix, f.status, f.message, f.fix)
		}
	}
	first := ""
	if f.status == Fail {
		first = f.hop
	}
	if report.FirstBroken != first {
		t.Errorf("first broken hop is %q, want %q: %+v", report.FirstBroken, first, report.Checks)
	}
	for _, result := range report.Checks {
		if result.Status != OK && result.Status != Skip && result.Name != f.hop && f.status != Fail {
			t.Errorf("a second finding: %+v", result)
		}
	}
}

func TestFaultsOfPods(t *testing.T) {
	for name, f := range map[string]fault{
		"image cannot be pulled": {waiting("ImagePullBackOff", "back-off pulling image"), "pods", Fail,
			"pod server-0 cannot pull its image registry/jobset-apiserver:v9 (ImagePullBackOff): back-off pulling image", "kubectl -n jobset-system describe pod server-0"},
		"a Secret is missing": {waiting("CreateContainerConfigError", `secret "x" not found`), "pods", Fail, `pod server-0 does not start (CreateContainerConfigError): secret "x" not found`, "describe pod"},
		"volumes hang": {func(t *testing.T, i *installation) {
			waiting("ContainerCreating", "")(t, i)
			i.server.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		}, "pods", Fail, "pod server-0 has waited 60m for its volumes or its network", "describe pod"},
		"just started": {waiting("ContainerCreating", ""), "pods", Fail, "pod server-0 is being started", "describe pod"},
		"pending": {func(t *testing.T, i *installation) {
			waiting("", "")(t, i)
			i.server.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"},
			}}
		}, "pods", Fail, "pod server-0 has no node (Unschedulable): 0/3 nodes are available", "describe pod server-0"},
		"crash loop": {func(t *testing.T, i *installation) {
			waiting("CrashLoopBackOff", "back-off 40s")(t, i)
			i.server.Status.ContainerStatuses[0].RestartCount = 4
			i.server.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "one\nError: --etcd-servers: connection refused\n"}
		}, "pods", Fail, "pod server-0 crashes: container apiserver ended with exit code 1 (Error) after 4 restarts: Error: --etcd-servers: connection refused", "logs server-0 --previous"},
		"no pods": {func(_ *testing.T, i *installation) {
			i.server, i.withoutSlice = nil, true
			i.unavailable("MissingEndpoints", "no addresses")
		}, "pods", Fail, "there are no pods of jobset-apiserver in namespace jobset-system", "describe deployments,statefulsets"},
		"not ready for a reason of its own": {func(_ *testing.T, i *installation) {
			unreadyServer(i)
			i.answers = map[string]answer{readyzPath: {code: http.StatusInternalServerError, body: []byte("[+]ping ok\n[-]client-ca failed: reason withheld\nreadyz check failed\n")}}
		}, "pods", Fail, "pod server-0 runs and is not ready: its readiness checks client-ca fail", "logs server-0"},
		"not ready for the store": {func(_ *testing.T, i *installation) {
			unreadyServer(i)
			i.answers = map[string]answer{readyzPath: {code: http.StatusInternalServerError, body: []byte("[-]etcd failed: reason withheld\n")}}
		}, "etcd", Fail, "the server does not reach its store: its readiness check etcd fails", "get pods"},
		"not ready, and nobody may ask why": {func(_ *testing.T, i *installation) { unreadyServer(i) }, "pods", Fail, "pod server-0 runs and is not ready", "logs server-0"},
		"the server refuses its store": {func(t *testing.T, i *installation) {
			unreadyServer(i)
			i.record = record(t, witness.Record{Refusal: refusal(20 * time.Second)})
		}, "store", Fail, "jobset-apiserver refuses to serve its store (EmptyStore", "get configmap jobset-apiserver-store"},
		"selector": {func(_ *testing.T, i *installation) {
			i.service.Spec.Selector, i.withoutSlice = map[string]string{"app": "other"}, true
			i.unavailable("MissingEndpoints", "no addresses")
		}, "service", Fail, "the selector of Service jobset-system/jobset-apiserver (app=other) does not match pod server-0 of jobset-apiserver, whose labels are app.kubernetes.io/name=jobset-apiserver", "kubectl apply -k"},
		"no endpoints": {func(_ *testing.T, i *installation) {
			i.withoutSlice = true
			i.unavailable("MissingEndpoints", "no addresses")
		}, "endpoints", Fail, "Service jobset-system/jobset-apiserver has no endpoints, although it selects pods", "get endpointslices"},
		"no endpoint is ready": {func(_ *testing.T, i *installation) {
			i.slice.Endpoints[0].Conditions.Ready = ptr.To(false)
			i.unavailable("MissingEndpoints", "no addresses")
		}, "endpoints", Fail, "no endpoint of Service jobset-system/jobset-apiserver is ready: 10.0.0.7", "get endpointslices"},
	} {
		t.Run(name, f.check)
	}
}

func TestFaultsOfTheWay(t *testing.T) {
	complain := func(message string) func(*testing.T, *installation) {
		return func(_ *testing.T, i *installation) {
			i.unavailable("FailedDiscoveryCheck", "failing or missing response from https://10.96.0.9:443/apis/jobset.x-k8s.io/v1alpha2: Get \"https://10.96.0.9:443/apis\": "+message)
		}
	}
	for name, f := range map[string]fault{
		"kube-apiserver is away": {func(_ *testing.T, i *installation) {
			i.answers = map[string]answer{"/version": {body: []byte("dial tcp 10.0.0.1:6443: connect: connection refused")}}
		}, "kube-apiserver", Fail, "kube-apiserver does not answer: dial tcp 10.0.0.1:6443: connect: connection refused", "kubectl cluster-info"},
		"APIService missing": {func(_ *testing.T, i *installation) { i.registered, i.blind = nil, true }, "registered", Fail, "there is no APIService v1alpha2.jobset.x-k8s.io", applyServices},
		"APIService of another Service": {func(_ *testing.T, i *installation) {
			_ = unstructured.SetNestedField(i.registered[0].Object, "elsewhere", "spec", "service", "name")
			i.registered = i.registered[:1]
			i.service.Name = "elsewhere"
			i.service.Labels = nil
			i.webhook = nil
			i.unavailable("MissingEndpoints", "x")
		}, "service", Fail, "APIService v1alpha2.jobset.x-k8s.io points to Service jobset-system/elsewhere, which does not belong to jobset-apiserver", "kubectl patch apiservice v1alpha2.jobset.x-k8s.io"},
		"APIService of a Service that does not exist, unlike others": {func(_ *testing.T, i *installation) {
			_ = unstructured.SetNestedField(i.registered[0].Object, "elsewhere", "spec", "service", "name")
			i.unavailable("ServiceNotFound", "x")
		}, "service", Fail, "APIService v1alpha2.jobset.x-k8s.io points to Service jobset-system/elsewhere, which does not exist", "kubectl patch apiservice v1alpha2.jobset.x-k8s.io"},
		"another APIService of another Service": {func(_ *testing.T, i *installation) {
			_ = unstructured.SetNestedField(i.registered[1].Object, "elsewhere", "spec", "service", "name")
		}, "service", Fail, "points to Service jobset-system/elsewhere, but JobSets are served by Service jobset-system/jobset-apiserver", "kubectl patch apiservice"},
		"APIService of no Service": {func(_ *testing.T, i *installation) {
			i.service = nil
			i.unavailable("ServiceNotFound", "service/jobset-apiserver in \"jobset-system\" is not present")
		}, "service", Fail, "points to Service jobset-system/jobset-apiserver, which does not exist", "kubectl patch apiservice"},
		"wrong port": {func(_ *testing.T, i *installation) {
			i.service.Spec.Ports[0].Port = 8080
			i.unavailable("ServicePortError", "x")
		}, "service", Fail, "points to port 443, which Service jobset-system/jobset-apiserver does not have", applyServices},
		"caBundle wrong": {complain("tls: failed to verify certificate: x509: certificate signed by unknown authority"), "certificate", Fail,
			"caBundle of APIService v1alpha2.jobset.x-k8s.io is not the authority of the server's certificate: x509: certificate signed by unknown authority", "kubectl patch apiservice v1alpha2.jobset.x-k8s.io"},
		"caBundle empty": {func(t *testing.T, i *installation) {
			complain("tls: failed to verify certificate: x509: certificate signed by unknown authority")(t, i)
			unstructured.RemoveNestedField(i.registered[0].Object, "spec", "caBundle")
		}, "certificate", Fail, "APIService v1alpha2.jobset.x-k8s.io has no caBundle", "kubectl patch apiservice"},
		"caBundle wrong, which the server writes": {func(t *testing.T, i *installation) {
			complain("x509: certificate signed by unknown authority")(t, i)
			i.server.Spec.Containers[0].Args = []string{"--tls-managed-secret=jobset-system/jobset-apiserver-serving"}
		}, "certificate", Fail, "is not the authority", "kubectl -n jobset-system delete pod server-0"},
		"expired, and the server renews it": {func(t *testing.T, i *installation) {
			complain("x509: certificate has expired or is not yet valid")(t, i)
			i.server.Spec.Containers[0].Args = []string{"--tls-managed-secret=jobset-system/jobset-apiserver-serving"}
		}, "certificate", Fail, "has expired", "kubectl -n jobset-system delete pod server-0"},
		"the server may not write caBundle": {func(_ *testing.T, i *installation) {
			i.server.Spec.Containers[0].Args = []string{"--tls-managed-secret=jobset-system/jobset-apiserver-serving"}
			i.denied = []string{"update apiservices.apiregistration.k8s.io v1alpha2.jobset.x-k8s.io"}
		}, "server-rights", Fail, "lacks 1 permission of its manifests: update apiservices.apiregistration.k8s.io v1alpha2.jobset.x-k8s.io", applyRoles},
		"certificate expired": {complain("tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-23T11:00:00Z is after 2026-11-22T11:00:00Z"), "certificate", Fail,
			"has expired or is not yet valid: x509: certificate has expired or is not yet valid: current time", "create secret tls jobset-apiserver-tls"},
		"certificate of another name": {complain("tls: failed to verify certificate: x509: certificate is valid for localhost, not jobset-apiserver.jobset-system.svc"), "certificate", Fail,
			"must be for jobset-apiserver.jobset-system.svc: x509: certificate is valid for localhost", "create secret tls"},
		"certificate ends soon": {func(t *testing.T, i *installation) {
			_, i.health.Certificate = chainFor(t, 50*time.Hour, serverName+".jobset-system.svc", serverName+"-webhook.jobset-system.svc")
			for _, s := range i.registered { // of a public authority
				unstructured.RemoveNestedField(s.Object, "spec", "caBundle")
			}
		}, "certificate", Warn, "the certificate of the server ends in 2d", "create secret tls"},
		"timeout": {complain("dial tcp 10.0.0.7:8443: i/o timeout"), "available", Fail, "packets are dropped between kube-apiserver and port 8443 of the pods", "get networkpolicies"},
		"timeout, and a NetworkPolicy": {func(t *testing.T, i *installation) {
			complain("context deadline exceeded")(t, i)
			i.policies = []runtime.Object{&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "deny-all"}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}}}}
		}, "available", Fail, "NetworkPolicy jobset-system/deny-all limits who may connect", "edit networkpolicy deny-all"},
		"refused connection": {complain("dial tcp 10.0.0.7:8443: connect: connection refused"), "available", Fail, "nothing listens behind Service jobset-system/jobset-apiserver", "get endpointslices"},
		"CRD left over": {func(_ *testing.T, i *installation) {
			i.definitions = []runtime.Object{&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "jobsets.jobset.x-k8s.io"},
				"spec": map[string]any{"versions": []any{map[string]any{"name": "v1alpha1", "served": false}, map[string]any{"name": "v1alpha2", "served": true}}},
			}}}
		}, "crd", Warn, "CustomResourceDefinition jobsets.jobset.x-k8s.io is left of another controller", `"path":"/spec/versions/1/served","value":false`},
		"FlowSchema gone": {func(_ *testing.T, i *installation) { i.flows = nil }, "flow-schemas", Warn,
			"there is no FlowSchema jobset-apiserver-delegated, jobset-controller or jobset-controller-leader-election", applyRoles},
		"FlowSchema changed": {func(_ *testing.T, i *installation) {
			i.flows[0].Spec.PriorityLevelConfiguration.Name = "global-default"
		}, "flow-schemas", Warn, "has another priority level", applyRoles},
		"webhook missing": {func(_ *testing.T, i *installation) { i.webhook = nil }, "webhook", Fail, "there is no MutatingWebhookConfiguration jobset-apiserver-pods", applyWebhook},
		"certificate without the webhook": {func(t *testing.T, i *installation) {
			ca, chain := chainFor(t, 90*24*time.Hour, serverName+".jobset-system.svc")
			i.health.Certificate = chain
			i.trust(ca)
		}, "webhook", Fail, "the certificate of the server is not for jobset-apiserver-webhook.jobset-system.svc, so kube-apiserver refuses pods of LeaderWorkerSets", "create secret tls jobset-apiserver-tls"},
		"clock": {func(_ *testing.T, i *installation) { i.health.Time = metav1.NewMicroTime(time.Now().Add(time.Minute)) }, "clocks", Warn,
			"the clock of jobset-apiserver is", "timedatectl"},
	} {
		t.Run(name, f.check)
	}
}

func TestFaultsOfThePrograms(t *testing.T) {
	for name, f := range map[string]fault{
		"auth-delegator gone": {func(_ *testing.T, i *installation) {
			i.denied = []string{"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"}
		}, "server-rights", Fail, "system:serviceaccount:jobset-system:jobset-apiserver lacks 2 permissions of its manifests: create subjectaccessreviews.authorization.k8s.io, create tokenreviews", applyRoles},
		"authentication-reader gone": {func(_ *testing.T, i *installation) {
			i.denied = []string{"get configmaps extension-apiserver-authentication in kube-system"}
		}, "server-rights", Fail, "lacks 1 permission of its manifests: get configmaps extension-apiserver-authentication in kube-system", applyRoles},
		"no permission for groups of pods": {func(_ *testing.T, i *installation) {
			i.manager.Spec.Containers[0].Args = []string{"--gang-scheduling-provider=volcano"}
			i.denied = []string{"create podgroups.scheduling.volcano.sh"}
		}, "controller-rights", Fail, "lacks 1 permission of its manifests: create podgroups.scheduling.volcano.sh", applyPodGroups},
		"no permission for addresses":               lacksEndpoints("--service-endpoints=controller"),
		"no permission for addresses of large sets": lacksEndpoints(),
		"controller's role incomplete": {func(_ *testing.T, i *installation) { i.denied = []string{"create jobs.batch"} }, "controller-rights", Fail,
			"system:serviceaccount:jobset-system:jobset-controller-manager lacks 1 permission of its manifests: create jobs.batch", applyRoles},
		"kube-apiserver does not answer the server": {func(_ *testing.T, i *installation) {
			i.health.Main = []selfcheck.Problem{{Name: "tokenreviews", Message: "no route to host"}}
		}, "questions", Fail, "kube-apiserver does not answer the server: tokenreviews (no route to host)", applyRoles},
		"a check fails": {func(_ *testing.T, i *installation) {
			i.health.Unready = []selfcheck.Problem{{Name: "client-ca", Message: "not loaded"}}
		}, "server", Fail,
			"server-0 is not ready: client-ca (not loaded)", "logs server-0"},
		"etcd down": {func(_ *testing.T, i *installation) {
			i.health.Unready = []selfcheck.Problem{{Name: "etcd", Message: "timeout"}, {Name: "etcd-readiness", Message: "timeout"}}
			i.health.Etcd = []selfcheck.Member{{Endpoint: "https://etcd-0:2379", Error: "connection refused"}}
		}, "etcd", Fail, "no member of etcd answers: https://etcd-0:2379: connection refused", "get pods"},
		"one member down": {func(_ *testing.T, i *installation) {
			i.health.Etcd = append(i.health.Etcd, selfcheck.Member{Endpoint: "https://etcd-1:2379", Error: "connection refused"})
		}, "etcd", Warn, "1 of 2 members of etcd do not answer: https://etcd-1:2379: connection refused", "get pods"},
		"etcd near its quota": {func(_ *testing.T, i *installation) { i.health.Etcd[0].InUseBytes = 1800 << 20 }, "etcd", Warn, "nearly full: 87% of its quota of 2048 MiB in use", "delete jobsets"},
		"etcd is full":        {func(_ *testing.T, i *installation) { i.health.Etcd[0].Alarms = []string{"NOSPACE"} }, "etcd", Fail, "has the alarm NOSPACE", "delete jobsets"},
		"etcd is slow":        {func(_ *testing.T, i *installation) { i.health.Etcd[0].LatencyMicroseconds = 900000 }, "etcd", Warn, "takes 900 ms to answer", ""},
		"no controller":       {func(_ *testing.T, i *installation) { i.lease = nil }, "controller", Fail, "there is no lease jobset-system/6d4f6a47.jobset.x-k8s.io", "get pods -l app.kubernetes.io/name=jobset-controller"},
		"the lease is stale, and its pod crashes": {func(t *testing.T, i *installation) {
			i.lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
			i.manager.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "manager", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "flag: bad"}},
			}}}
		}, "controller", Fail, "no controller works: manager-x, which held the lease jobset-system/6d4f6a47.jobset.x-k8s.io, renewed it 60m ago; pod manager-x crashes: container manager ended with exit code 2 (Error) after 0 restarts: flag: bad", "logs manager-x --previous"},
		"gates differ": {func(_ *testing.T, i *installation) {
			i.lease.Labels = helper.ControllerGateLabels(map[string]bool{"ElasticJobSet": false})
		}, "gates", Warn,
			"feature gates differ: ElasticJobSet is on in the server and off in the controller", "grep feature-gates"},
		"versions differ": {func(_ *testing.T, i *installation) {
			i.health.Version = "v0.9.0"
			i.lease.Spec.HolderIdentity = ptr.To(helper.ControllerIdentity("manager-x", "u", "v0.4.0"))
		}, "versions", Warn, "the controller (v0.4.0) and the server (v0.9.0) are more than 1 minor version apart", "images of one release"},
		"the server may not ask": {func(_ *testing.T, i *installation) {
			i.answers = map[string]answer{healthPath: {code: http.StatusInternalServerError, body: []byte("Internal Server Error: subjectaccessreviews.authorization.k8s.io is forbidden")}}
		}, "server", Fail, "the server may not ask kube-apiserver what a user may do", applyRoles},
		"an older server": {func(_ *testing.T, i *installation) {
			i.answers = map[string]answer{healthPath: {code: http.StatusNotFound}}
		}, "server", Warn, oldServer, ""},
		"the user may not": {func(_ *testing.T, i *installation) {
			i.answers = map[string]answer{healthPath: {code: http.StatusForbidden}}
		}, "server", Warn,
			"you have no permission to read what the server says about itself (serverhealth.jobset.x-k8s.io); the ClusterRole jobset-doctor grants it", ""},
	} {
		t.Run(name, f.check)
	}
}
