// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/server/resourceconfig"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// Complete fills what follows from other flags.
func (o *Options) Complete() error {
	main := o.Recommended.CoreAPI.CoreAPIKubeconfigPath
	for _, kubeconfig := range []*string{&o.Recommended.Authentication.RemoteKubeConfigFile,
		&o.Recommended.Authorization.RemoteKubeConfigFile} {
		if *kubeconfig == "" {
			*kubeconfig = main
		}
	}
	if cert := &o.Recommended.SecureServing.ServerCert; cert.CertDirectory == "" {
		cert.CertDirectory = o.Storage.certificates()
	}
	return nil
}

// Validate checks everything that can be checked without starting anything.
func (o *Options) Validate() error {
	if err := o.Storage.Validate(o.Recommended.Etcd); err != nil {
		return err
	}
	if err := o.Archive.validate(o.Storage); err != nil {
		return err
	}
	if err := o.validateMembers(); err != nil {
		return err
	}
	if err := o.validateRuntimeConfig(); err != nil {
		return err
	}
	if err := o.validateServing(); err != nil {
		return err
	}
	if err := o.validateFiles(); err != nil {
		return err
	}
	if err := o.validateKubeconfigs(); err != nil {
		return err
	}
	if err := o.validateStored(); err != nil {
		return err
	}
	return o.validateLibrary()
}

// validateStored checks the flags for the form of stored objects. It reads the encryption configuration as the store does, and
// closes what that opens.
func (o *Options) validateStored() error {
	etcd := o.Recommended.Etcd
	if media := etcd.DefaultStorageMediaType; media != runtime.ContentTypeProtobuf && media != runtime.ContentTypeJSON {
		return flagerror.New("storage-media-type", "%q is not supported: use %s", media, runtime.ContentTypeProtobuf)
	}
	if etcd.EncryptionProviderConfigFilepath == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := encryptionconfig.LoadEncryptionConfig(ctx, etcd.EncryptionProviderConfigFilepath, etcd.EncryptionProviderConfigAutomaticReload,
		"")
	return flagerror.Wrap("encryption-provider-config", err, "correct the file")
}

func (o *Options) validateServing() error {
	serving := o.Recommended.SecureServing
	if serving.BindPort < 1 || serving.BindPort > 65535 {
		return flagerror.New("secure-port", "must be between 1 and 65535, not %d", serving.BindPort)
	}
	pair := serving.ServerCert.CertKey
	if (pair.CertFile == "") != (pair.KeyFile == "") {
		return flagerror.New("tls-cert-file", "must be set together with --tls-private-key-file")
	}
	if err := o.ManagedCert.validate(pair.CertFile); err != nil {
		return err
	}
	if pair.CertFile == "" && o.ManagedCert.Secret == "" && serving.ServerCert.CertDirectory == "" {
		return flagerror.New("tls-cert-file", "must be set together with --tls-private-key-file, or --cert-dir must be set for a self-signed "+
			"certificate")
	}
	if pair.CertFile == "" && len(o.SANs) == 0 {
		return flagerror.New("tls-san", "must name at least one DNS name or IP address for the self-signed certificate")
	}
	return nil
}

// validateFiles reads every file once, so that the error names the flag: the libraries that read them later do not know it.
func (o *Options) validateFiles() error {
	r := o.Recommended
	transport := r.Etcd.StorageConfig.Transport
	files := []struct{ flag, path string }{
		{"tls-cert-file", r.SecureServing.ServerCert.CertKey.CertFile},
		{"tls-private-key-file", r.SecureServing.ServerCert.CertKey.KeyFile},
		{"etcd-cafile", transport.TrustedCAFile},
		{"etcd-certfile", transport.CertFile},
		{"etcd-keyfile", transport.KeyFile},
		{"encryption-provider-config", r.Etcd.EncryptionProviderConfigFilepath},
		{"client-ca-file", r.Authentication.ClientCert.ClientCA},
		{"requestheader-client-ca-file", r.Authentication.RequestHeader.ClientCAFile},
		{"admission-control-config-file", r.Admission.ConfigFile},
		{"audit-policy-file", r.Audit.PolicyFile},
		{"audit-webhook-config-file", r.Audit.WebhookOptions.ConfigFile},
		{"egress-selector-config-file", r.EgressSelector.ConfigFile},
		{"tracing-config-file", r.Traces.ConfigFile},
		{"kubeconfig", r.CoreAPI.CoreAPIKubeconfigPath},
		{"authentication-kubeconfig", r.Authentication.RemoteKubeConfigFile},
		{"authorization-kubeconfig", r.Authorization.RemoteKubeConfigFile},
	}
	for _, file := range files {
		if file.path == "" {
			continue
		}
		if _, err := os.ReadFile(file.path); err != nil {
			return flagerror.Wrap(file.flag, err, "give a file that this process can read")
		}
	}
	return nil
}

func (o *Options) validateKubeconfigs() error {
	kubeconfigs := []struct{ flag, path string }{
		{"kubeconfig", o.Recommended.CoreAPI.CoreAPIKubeconfigPath},
		{"authentication-kubeconfig", o.Recommended.Authentication.RemoteKubeConfigFile},
		{"authorization-kubeconfig", o.Recommended.Authorization.RemoteKubeConfigFile},
	}
	for _, kubeconfig := range kubeconfigs {
		if _, err := mainapi.LoadKubeconfig(kubeconfig.flag, kubeconfig.path); err != nil {
			return err
		}
	}
	return nil
}

// validateLibrary runs the checks of the library. Those of its etcd options are left out: they insist on servers.
func (o *Options) validateLibrary() error {
	r := o.Recommended
	var errs []error
	errs = append(errs, r.Authentication.Validate()...)
	errs = append(errs, r.Authorization.Validate()...)
	errs = append(errs, r.Audit.Validate()...)
	errs = append(errs, r.Admission.Validate()...)
	errs = append(errs, r.EgressSelector.Validate()...)
	errs = append(errs, r.Traces.Validate()...)
	errs = append(errs, o.Limits.Validate()...)
	return utilerrors.NewAggregate(errs)
}

// SelfSigned is the directory of the self-signed certificate, and nil when the certificate comes from files or a Secret.
func (o *Options) SelfSigned() *servingcert.Directory {
	cert := o.Recommended.SecureServing.ServerCert
	if cert.CertKey.CertFile != "" || o.ManagedCert.Secret != "" {
		return nil
	}
	return servingcert.NewDirectory(cert.CertDirectory, o.SANs)
}

// RuntimeConfigAdvice is what to do about a value of the flag that is wrong.
const RuntimeConfigAdvice = "use group/version=false, or api/all=false and group/version=true, with groups and versions that this " +
	"server has"

func (o *Options) addRuntimeConfigFlag(fs *pflag.FlagSet) {
	var versions []string
	for _, version := range o.APIGroups.PrioritizedVersionsAllGroups() {
		versions = append(versions, version.String())
	}
	fs.Var(&o.APIEnablement.RuntimeConfig, "runtime-config", "API groups and versions to serve, as pairs key=true|false: "+
		"group/version for one version, group/version/resource for one resource, api/all for all, api/ga, api/beta and "+
		"api/alpha for all versions of that stage. All are served by default, as far as their feature gates are on: "+strings.Join(versions,
		", ")+". "+
		"Delete the APIService of a version that you switch off, otherwise no namespace of the cluster can be deleted.")
}

// validateRuntimeConfig checks the flag, with the merge that is applied later: the library checks less by itself.
func (o *Options) validateRuntimeConfig() error {
	if errs := o.APIEnablement.Validate(o.APIGroups); len(errs) > 0 {
		return flagerror.Wrap("runtime-config", utilerrors.NewAggregate(errs), RuntimeConfigAdvice)
	}
	enabled, err := resourceconfig.MergeAPIResourceConfigs(o.APIGroups.Enabled(), o.APIEnablement.RuntimeConfig, o.APIGroups)
	if err != nil {
		return flagerror.Wrap("runtime-config", err, RuntimeConfigAdvice)
	}
	for key := range o.APIEnablement.RuntimeConfig {
		if parts := strings.Split(key, "/"); len(parts) == 3 && !o.APIGroups.HasResource(parts[0], parts[2]) {
			return flagerror.Wrap("runtime-config", fmt.Errorf("unknown resource %s", key), RuntimeConfigAdvice)
		}
	}
	for version, gate := range o.APIGroups.Off(o.Gate) {
		if o.APIEnablement.RuntimeConfig[version.String()] == "true" {
			return flagerror.New("runtime-config", "must not switch on %s while its feature gate is off: use --feature-gates=%s=true, too", version,
				gate)
		}
		enabled.DisableVersions(version)
	}
	if len(o.APIGroups.Served(enabled)) == 0 {
		return flagerror.New("runtime-config", "must leave a resource on: %s", RuntimeConfigAdvice)
	}
	return nil
}
