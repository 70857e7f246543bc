// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// ManagedFlag is the name of the flag of ManagedCertOptions.Secret.
const ManagedFlag = "tls-managed-secret"

// ManagedCertOptions are the options of a serving certificate that all servers of an installation share.
type ManagedCertOptions struct {
	// Secret has the form namespace/name. Without it, the certificate comes from elsewhere.
	Secret string
	// Policy has the lifetimes, which tests shorten.
	Policy servingcert.Policy
}

func (o *ManagedCertOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Secret, ManagedFlag, o.Secret, "Secret, as namespace/name, in which the servers of this installation keep a "+
		"certificate authority and a serving certificate "+
		"for the names in --tls-san. It must exist and may be empty. The server fills it, renews both in time, and writes the authority into "+
		"the caBundle of the APIServices of its groups and of the webhook "+apigroups.PodsWebhook+
		", as far as they name a Service in --tls-san. Must not be set together with --tls-cert-file.")
	fs.DurationVar(&o.Policy.Authority, "tls-managed-authority-duration", o.Policy.Authority, "Lifetime of the authority in --"+ManagedFlag+
		".")
	fs.DurationVar(&o.Policy.Serving, "tls-managed-certificate-duration", o.Policy.Serving, "Lifetime of the serving certificate in --"+
		ManagedFlag+".")
	for _, name := range []string{"tls-managed-authority-duration", "tls-managed-certificate-duration"} {
		fs.Lookup(name).Hidden = true
	}
}

// SecretName is the namespace and name of Secret.
func (o *ManagedCertOptions) SecretName() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.Secret, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (o *ManagedCertOptions) validate(certFile string) error {
	if o.Secret == "" {
		return nil
	}
	if certFile != "" {
		return flagerror.New(ManagedFlag, "must not be set together with --tls-cert-file: leave one of both out")
	}
	secret := o.SecretName()
	if len(validation.IsDNS1123Label(secret.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
		return flagerror.New(ManagedFlag, "%q must have the form namespace/name", o.Secret)
	}
	return flagerror.Wrap("tls-managed-certificate-duration", o.Policy.Validate(), "correct the durations")
}
