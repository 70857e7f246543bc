// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
)

// managedFlag is the name of the flag of ManagedCertOptions.Secret.
const managedFlag = "tls-managed-secret"

// ManagedCertOptions are the options of a serving certificate that all servers of an installation share.
type ManagedCertOptions struct {
	// Secret has the form namespace/name. Without it, the certificate comes from elsewhere.
	Secret string
	// Policy has the lifetimes, which tests shorten.
	Policy servingcert.Policy

	manager atomic.Pointer[servingcert.Manager]
}

func (o *ManagedCertOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Secret, managedFlag, o.Secret, "Secret, as namespace/name, in which the servers of this installation keep a "+
		"certificate authority and a serving certificate "+
		"for the names in --tls-san. It must exist and may be empty. The server fills it, renews both in time, and writes the authority into "+
		"the caBundle of the APIServices of its groups and of the webhook "+apigroups.PodsWebhook+
		", as far as they name a Service in --tls-san. Must not be set together with --tls-cert-file.")
	fs.DurationVar(&o.Policy.Authority, "tls-managed-authority-duration", o.Policy.Authority, "Lifetime of the authority in --"+managedFlag+
		".")
	fs.DurationVar(&o.Policy.Serving, "tls-managed-certificate-duration", o.Policy.Serving, "Lifetime of the serving certificate in --"+
		managedFlag+".")
	for _, name := range []string{"tls-managed-authority-duration", "tls-managed-certificate-duration"} {
		fs.Lookup(name).Hidden = true
	}
}

func (o *ManagedCertOptions) secret() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.Secret, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (o *ManagedCertOptions) validate(certFile string) error {
	if o.Secret == "" {
		return nil
	}
	if certFile != "" {
		return flagError(managedFlag, "must not be set together with --tls-cert-file: leave one of both out")
	}
	secret := o.secret()
	if len(validation.IsDNS1123Label(secret.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
		return flagError(managedFlag, "%q must have the form namespace/name", o.Secret)
	}
	return wrapFlagError("tls-managed-certificate-duration", o.Policy.Validate(), "correct the durations")
}

// applyManagedCert makes the certificate of the installation, or takes the one that is there, before anything is served.
func (o *Options) applyManagedCert(ctx context.Context, main *clients) error {
	if o.ManagedCert.Secret == "" {
		return nil
	}
	skew := &servingcert.Skew{}
	config := rest.CopyConfig(main.config)
	config.Timeout = mainTimeout // the manager goes on with this client
	config.Wrap(skew.Wrap)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return wrapFlagError("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	manager := servingcert.New(servingcert.Config{
		Kube: kube, Dynamic: main.dynamic, Secret: o.ManagedCert.secret(), Names: o.SANs, Targets: o.targets(),
		Policy: o.ManagedCert.Policy, Clock: clock.RealClock{}, Skew: skew.Last,
	})
	err = o.retryMain(ctx, "the serving certificate in Secret "+o.ManagedCert.Secret, func(ctx context.Context) error {
		err := manager.Pass(ctx)
		if certificate, _ := manager.CurrentCertKeyContent(); len(certificate) > 0 {
			// What is wrong beside it keeps the server from getting ready, not from starting.
			return nil
		}
		return err
	})
	if err != nil {
		return wrapFlagError(managedFlag, err, "repair the Secret, or serve with --tls-cert-file")
	}
	o.ManagedCert.manager.Store(manager)
	o.Recommended.SecureServing.ServerCert.GeneratedCert = manager
	go manager.Run(ctx)
	return nil
}

// targets are the objects that make kube-apiserver come to this server.
func (o *Options) targets() []servingcert.Target {
	off := o.apiGroups.Off(o.gate)
	var targets []servingcert.Target
	for _, version := range o.apiGroups.PrioritizedVersionsAllGroups() {
		if _, isOff := off[version]; !isOff {
			targets = append(targets, servingcert.APIService(version))
		}
	}
	return append(targets, servingcert.MutatingWebhook(apigroups.PodsWebhook))
}

// checkManagedCert makes the server ready when kube-apiserver trusts the certificate.
func (o *Options) checkManagedCert(config *server.Config) {
	if manager := o.ManagedCert.manager.Load(); manager != nil {
		config.AddReadyzChecks(manager)
	}
}
