// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

const applyRoles = "kubectl apply -k artifacts/base/rbac"

func roles(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

var rightsFaults = map[string]func(ward){
	"auth-delegator gone": func(w ward) {
		w.remove(roles("clusterrolebindings"), "", "jobset-apiserver:auth-delegator")
		w.finds("server-rights", "fail", applyRoles, "create subjectaccessreviews.authorization.k8s.io", "create tokenreviews.authentication.k8s.io")
	},
	"authentication-reader gone": func(w ward) {
		w.remove(roles("rolebindings"), metav1.NamespaceSystem, "jobset-apiserver:authentication-reader")
		w.finds("server-rights", "fail", applyRoles, "lacks 1 permission of its manifests: get configmaps extension-apiserver-authentication in kube-system")
	},
	"role of the controller incomplete": func(w ward) {
		w.change(roles("clusterroles"), "jobset-controller-manager", func(o *unstructured.Unstructured) {
			rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
			_ = unstructured.SetNestedSlice(o.Object, rules[1:], "rules") // the first one is about JobSets
		})
		w.finds("controller-rights", "fail", applyRoles, "jobset-controller-manager lacks 6 permissions of its manifests: create jobsets.jobset.x-k8s.io")
	},
}

// writeLease ends the controller and changes its lease.
func (w ward) writeLease(change func(*coordinationv1.Lease)) {
	w.Helper()
	leases := plane.Kube.CoordinationV1().Leases(apiservice.Namespace)
	held := func(ctx context.Context) error {
		_, err := leases.Get(ctx, helper.ControllerLease, metav1.GetOptions{})
		return err
	}
	framework.Eventually(w, "the controller holds its lease", held)
	w.controller.Kill()
	w.Cleanup(func() { w.startController(w.suite) })
	lease, err := leases.Get(w.Context(), helper.ControllerLease, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	change(lease)
	if _, err := leases.Update(w.Context(), lease, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { // so that the next controller need not wait until the lease ends
		err := leases.Delete(context.WithoutCancel(w.Context()), helper.ControllerLease, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	})
}

var controllerFaults = map[string]func(ward){
	"lease stale": func(w ward) {
		w.writeLease(func(lease *coordinationv1.Lease) {
			lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2 * time.Hour)))
		})
		w.finds("controller", "fail", "describe deployments,statefulsets", "no controller works: ", "renewed it 12", "there are no pods of jobset-controller")
	},
	"controller of an old version": func(w ward) {
		w.writeLease(func(lease *coordinationv1.Lease) {
			lease.Spec.HolderIdentity = ptr.To(helper.ControllerIdentity("old", "u", "v0.4.0"))
			lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = ptr.To(metav1.NowMicro()), ptr.To[int32](600)
		})
		w.finds("versions", "warn", "images of one release", "the controller (v0.4.0) and the server ("+plane.Version+") are more than 1 minor version apart")
	},
	"gates differ": func(w ward) {
		w.writeLease(func(*coordinationv1.Lease) {})
		if err := plane.Kube.CoordinationV1().Leases(apiservice.Namespace).Delete(w.Context(), helper.ControllerLease, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
		w.startController(w.T, "--feature-gates=ElasticJobSet=true")
		w.finds("gates", "warn", "feature-gates", "ElasticJobSet is off in the server and on in the controller")
		w.controller.Kill()
	},
}

var otherFaults = map[string]func(ward){
	"webhooks of upstream are left": func(w ward) {
		left := &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "jobset-validating-webhook-configuration"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "vjobset.kb.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
					Namespace: "jobset-system", Name: "jobset-webhook-service",
				}},
				Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"jobset.x-k8s.io"}, APIVersions: []string{"v1alpha2"}, Resources: []string{"jobsets"},
				}}},
			}},
		}
		configurations := plane.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		if _, err := configurations.Create(w.Context(), left, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() {
			if err := configurations.Delete(context.WithoutCancel(w.Context()), left.Name, metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
		w.finds("other-webhooks", "fail", "kubectl delete validatingwebhookconfiguration/"+left.Name, left.Name, "jobset-system/jobset-webhook-service, which does not exist")
	},
	"webhook missing": func(w ward) {
		w.remove(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, "", apiservice.WebhookName)
		w.finds("webhook", "fail", "kubectl apply -f artifacts/base/webhook.yaml", "there is no MutatingWebhookConfiguration "+apiservice.WebhookName)
	},
	"FlowSchema gone": func(w ward) {
		w.remove(schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"}, "", "jobset-apiserver-delegated")
		w.finds("flow-schemas", "warn", applyRoles, "there is no FlowSchema jobset-apiserver-delegated")
	},
}

// lastFaults are those after which the installation is not the same.
var lastFaults = map[string]func(ward){
	"etcd is away": func(w ward) {
		w.etcd.Kill()
		w.finds("etcd", "fail", "get pods", "no member of etcd answers: "+w.etcd.Endpoint)
		w.etcd.Launch(w.suite)
		w.awaitHealthy(w.T)
	},
	"etcd is nearly full": func(w ward) {
		client := w.etcd.Client(w)
		for i := range 57 { // 81 %, in a file that grows by 16 MiB at a time
			if _, err := client.Put(w.Context(), fmt.Sprintf("/fill/%d", i), string(make([]byte, 1<<20))); err != nil {
				w.Fatal(err)
			}
		}
		w.finds("etcd", "warn", "", "is nearly full: ", "% of its quota of 70 MiB in use")
	},
	"the server refuses its store": func(w ward) {
		server := plane.LaunchServer(w, withWitness(plane.StartEtcd(w).Flags...)...)
		w.point(server.Port, w.ca(server))
		w.finds("store", "fail", "get configmap jobset-apiserver-store", "jobset-apiserver refuses to serve its store (EmptyStore")
	},
	"the server is away": func(w ward) {
		w.server.Kill()
		w.finds("available", "fail", "get endpointslices", "kube-apiserver gets no connection to the server: nothing listens behind Service jobset-system/jobset-apiserver")
	},
}
