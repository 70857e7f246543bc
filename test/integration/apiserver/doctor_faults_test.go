// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// change changes a cluster-scoped object until the end of the fault.
func (w ward) change(resource schema.GroupVersionResource, name string, change func(*unstructured.Unstructured)) {
	w.Helper()
	w.changeIn(resource, "", name, change)
}

func (w ward) changeIn(resource schema.GroupVersionResource, namespace, name string, change func(*unstructured.Unstructured)) {
	w.Helper()
	objects := plane.Dynamic.Resource(resource).Namespace(namespace)
	var before *unstructured.Unstructured
	// kube-apiserver writes the status of APIServices meanwhile.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if before, err = objects.Get(w.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		after := before.DeepCopy()
		change(after)
		_, err = objects.Update(w.Context(), after, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		framework.EventuallyNoProblem(w, func() string {
			current, err := objects.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				restored := before.DeepCopy()
				restored.SetResourceVersion(current.GetResourceVersion())
				_, err = objects.Update(ctx, restored, metav1.UpdateOptions{})
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
	})
}

// remove deletes an object until the end of the fault.
func (w ward) remove(resource schema.GroupVersionResource, namespace, name string) {
	w.Helper()
	objects := plane.Dynamic.Resource(resource).Namespace(namespace)
	before, err := objects.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if err := objects.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		before.SetResourceVersion("")
		before.SetUID("")
		_, err := objects.Create(context.WithoutCancel(w.Context()), before, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.Error(err)
		}
	})
}

// point makes all APIServices and the Service lead to a port of this machine, with a caBundle, until the end of the fault.
func (w ward) point(port int, ca []byte) {
	w.Helper()
	w.changeIn(schema.GroupVersionResource{Version: "v1", Resource: "services"}, apiservice.Namespace, apiservice.ServiceName, func(o *unstructured.Unstructured) {
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		ports[0].(map[string]any)["port"] = int64(port)
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
	})
	for _, group := range apiservice.Groups {
		w.change(apiservice.Resource, apiservice.Name(group), func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(port), "spec", "service", "port")
			_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(ca), "spec", "caBundle")
		})
	}
}

var registrationFaults = map[string]func(ward){
	"APIService missing": func(w ward) {
		w.remove(apiservice.Resource, "", apiservice.JobSets)
		w.finds("registered", "fail", "kubectl apply -f artifacts/base/apiservice.yaml", "there is no APIService "+apiservice.JobSets)
	},
	"APIService of a Service that does not exist": func(w ward) {
		w.change(apiservice.Resource, apiservice.JobSets, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "elsewhere", "spec", "service", "name")
		})
		w.finds("service", "fail", "kubectl patch apiservice "+apiservice.JobSets, "points to Service jobset-system/elsewhere, which does not exist")
	},
	"CRD left over": func(w ward) {
		defineJobSets(w.T, nil)
		w.finds("crd", "warn", "kubectl patch customresourcedefinition jobsets.jobset.x-k8s.io", "is left of another controller and still serves a version")
	},
}

var certificateFaults = map[string]func(ward){
	"caBundle wrong": func(w ward) {
		other, err := framework.NewAuthority("another")
		if err != nil {
			w.Fatal(err)
		}
		w.change(apiservice.Resource, apiservice.JobSets, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(other.CA()), "spec", "caBundle")
		})
		w.findsCertificate("kubectl patch apiservice "+apiservice.JobSets, "caBundle of APIService "+apiservice.JobSets+" is not the authority of the server's certificate", "x509: ")
	},
	"caBundle empty": func(w ward) {
		w.change(apiservice.Resource, apiservice.JobSets, func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "caBundle")
		})
		w.findsCertificate("kubectl patch apiservice "+apiservice.JobSets, "APIService "+apiservice.JobSets+" has no caBundle", "x509: ")
	},
	"certificate expired": func(w ward) {
		w.serveWith(apiservice.ServiceName+"."+apiservice.Namespace+".svc", -time.Minute)
		w.findsCertificate("create secret tls jobset-apiserver-tls", "has expired or is not yet valid: x509: certificate has expired or is not yet valid")
	},
	"certificate of another name": func(w ward) {
		w.serveWith("localhost", time.Hour)
		w.findsCertificate("create secret tls jobset-apiserver-tls", "must be for jobset-apiserver.jobset-system.svc", "x509: certificate is valid for localhost")
	},
}

// findsCertificate is finds for the hop of certificates. Before Kubernetes 1.36, kube-apiserver does not say what it cannot verify.
func (w ward) findsCertificate(fix string, texts ...string) {
	w.Helper()
	if olderThan(w.T, "v1.36.0") {
		w.finds("available", "fail", "kubectl describe apiservice "+apiservice.JobSets, "JobSets are not served")
		return
	}
	w.finds("certificate", "fail", fix, texts...)
}

// serveWith makes kube-apiserver reach a second server, of the same store, with a certificate for a name that ends after the time.
func (w ward) serveWith(name string, left time.Duration) {
	w.Helper()
	begin := time.Now().Add(-time.Hour)
	ca, err := authority.New(certutil.Config{CommonName: "authority", NotBefore: begin}, time.Now().Add(time.Hour))
	if err != nil {
		w.Fatal(err)
	}
	pair, err := ca.Issue(certutil.Config{
		CommonName: name, NotBefore: begin, AltNames: certutil.AltNames{DNSNames: []string{name}}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, time.Now().Add(left))
	if err != nil {
		w.Fatal(err)
	}
	cert, key, err := pair.PEM()
	if err != nil {
		w.Fatal(err)
	}
	caPEM, _, err := ca.PEM()
	if err != nil {
		w.Fatal(err)
	}
	dir := w.TempDir()
	for file, content := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			w.Fatal(err)
		}
	}
	server := plane.LaunchServer(w, append(withWitness(w.etcd.Flags...), "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))...)
	w.point(server.Port, caPEM)
}
