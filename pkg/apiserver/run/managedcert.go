// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// applyManagedCert makes the certificate of the installation, or takes the one that is there, before anything is served.
func (r *run) applyManagedCert(ctx context.Context, main *mainapi.Clients) error {
	if r.ManagedCert.Secret == "" {
		return nil
	}
	config, err := certConfig(main, r.ManagedCert)
	if err != nil {
		return err
	}
	config.Names, config.Targets = r.SANs, r.targets()
	manager := servingcert.New(config)
	if err := r.awaitCert(ctx, "the serving certificate", manager); err != nil {
		return flagerror.Wrap(options.ManagedFlag, err, "repair the Secret, or serve with --tls-cert-file")
	}
	r.manager.Store(manager)
	r.Recommended.SecureServing.ServerCert.GeneratedCert = manager
	go manager.Run(ctx)
	return nil
}

// certConfig returns what keeps certificates in a Secret.
func certConfig(main *mainapi.Clients, cert options.ManagedCertOptions) (servingcert.Config, error) {
	skew := &servingcert.Skew{}
	config := rest.CopyConfig(main.Config)
	config.Timeout = mainapi.Timeout // the manager goes on with this client
	config.Wrap(skew.Wrap)
	kube, err := kubernetes.NewForConfig(config)
	return servingcert.Config{
		Kube: kube, Dynamic: main.Dynamic, Secret: cert.SecretName(), Policy: cert.Policy, Clock: clock.RealClock{}, Skew: skew.Last,
	}, flagerror.Wrap("kubeconfig", err, "give a valid kubeconfig for the main cluster")
}

// awaitCert makes the certificate of a manager, or takes the one that is there.
func (r *run) awaitCert(ctx context.Context, what string, manager *servingcert.Manager) error {
	return r.wait.Retry(ctx, what+" in Secret "+manager.Secret.String(), func(ctx context.Context) error {
		err := manager.Pass(ctx)
		if certificate, _ := manager.CurrentCertKeyContent(); len(certificate) > 0 {
			// What is wrong beside it keeps the server from getting ready, not from starting.
			return nil
		}
		return err
	})
}

// targets are the objects that make kube-apiserver come to this server.
func (r *run) targets() []servingcert.Target {
	off := r.APIGroups.Off(r.Gate)
	var targets []servingcert.Target
	for _, version := range r.APIGroups.PrioritizedVersionsAllGroups() {
		if _, isOff := off[version]; !isOff {
			targets = append(targets, servingcert.APIService(version))
		}
	}
	return append(targets, servingcert.MutatingWebhook(apigroups.PodsWebhook))
}

// checkManagedCert makes the server ready when kube-apiserver trusts the certificate.
func (r *run) checkManagedCert(config *server.Config) {
	if manager := r.manager.Load(); manager != nil {
		config.AddReadyzChecks(manager)
	}
}
