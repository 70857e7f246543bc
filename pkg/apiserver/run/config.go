// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/admission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// config returns the configuration of the server, without its storage.
func (r *run) config(ctx context.Context, main *mainapi.Clients) (*apiserver.Config, error) {
	scheme, codecs := apiserver.NewScheme()
	generic := server.NewRecommendedConfig(codecs)
	if err := r.Limits.ApplyTo(&generic.Config); err != nil {
		return nil, fmt.Errorf("applying limits: %w", err)
	}
	generic.FeatureGate = r.Gate
	generic.EffectiveVersion = options.NewEffectiveVersion()
	if err := r.APIEnablement.ApplyTo(&generic.Config, r.APIGroups.Enabled(), r.APIGroups); err != nil {
		return nil, flagerror.Wrap("runtime-config", err, options.RuntimeConfigAdvice)
	}
	if address, err := r.Recommended.SecureServing.DefaultExternalAddress(); err == nil {
		generic.PublicAddress = address
	}

	namer := apiserver.NewDefinitionNamer()
	generic.OpenAPIConfig = server.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	title, version := options.ComponentName, generic.EffectiveVersion.Info().GitVersion
	generic.OpenAPIConfig.Info.Title, generic.OpenAPIConfig.Info.Version = title, version
	generic.OpenAPIV3Config = server.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title, generic.OpenAPIV3Config.Info.Version = title, version

	if err := r.Recommended.EgressSelector.ApplyTo(&generic.Config); err != nil {
		return nil, flagerror.Wrap("egress-selector-config-file", err, "correct the file")
	}
	if err := r.Recommended.Traces.ApplyTo(generic.EgressSelector, &generic.Config); err != nil {
		return nil, flagerror.Wrap("tracing-config-file", err, "correct the file")
	}
	if err := r.applyServing(generic); err != nil {
		return nil, err
	}
	names, err := apiserver.NewDefinitionNames()
	if err != nil {
		return nil, fmt.Errorf("naming the definitions of what policies change: %w", err)
	}
	schemas := admission.Schemas{Config: generic.OpenAPIV3Config, Names: names}
	config := &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs, APIGroups: r.APIGroups, Gates: r.Gate}
	config.Memory = space.NewMemory()
	return config, r.applyMainCluster(ctx, config, main, schemas)
}

// applyStorage stores objects as --storage-media-type says, each in the storage version of its group. The storage must
// be reachable; store is the embedded etcd, if there is one, guard what keeps the server from answering for the wrong
// store, objects takes those that cannot be read, and runs records the runs of objects.
func (r *run) applyStorage(config *apiserver.Config, store *etcd.Server, guard *storecheck.Guard, objects *unreadable.Objects,
	runs *archive.Archive) error {
	options := *r.Recommended.Etcd
	info, ok := runtime.SerializerInfoForMediaType(config.Codecs.SupportedMediaTypes(), options.DefaultStorageMediaType)
	if !ok {
		return fmt.Errorf("no serializer for %s", options.DefaultStorageMediaType)
	}
	storageVersions := config.APIGroups.StorageVersions()
	options.StorageConfig.EncodeVersioner = storageVersions
	codec := config.Codecs.CodecForVersions(info.Serializer, config.Codecs.UniversalDeserializer(), storageVersions,
		runtime.InternalGroupVersioner)
	shared := watchcache.NewSharing(codec)
	options.StorageConfig.Codec = shared
	if r.isSingle(store) {
		etcd.AllowSlowDisk(&options)
	}
	if err := options.ApplyTo(&config.Generic.Config); err != nil {
		return flagerror.Wrap("encryption-provider-config", err, "correct the file")
	}
	if store != nil {
		etcd.CheckReadinessOnce(&config.Generic.Config)
		etcd.TolerateSlowDisk(&config.Generic.Config, clock.RealClock{})
		store.Register()
	}
	r.applyMemberChecks(&config.Generic.Config)
	sizes, err := genericoptions.ParseWatchCacheSizes(options.WatchCacheSizes)
	if err != nil {
		return flagerror.Wrap("watch-cache-sizes", err, "correct the list")
	}
	stores := apiserver.Stores{
		Codec: shared, Unreadable: objects, StoreCheck: guard, Space: newSpaceGuard(store, config.Memory), Record: runs.Wrap,
		Cached: func(resource schema.GroupResource) bool {
			size, set := sizes[resource]
			return options.EnableWatchCache && (!set || size > 0)
		},
	}
	config.Generic.RESTOptionsGetter = stores.Decorate(config.Generic.RESTOptionsGetter)
	if guard != nil {
		config.Generic.AddReadyzChecks(guard)
		config.Filters.StoreCheck = guard.WithGate
	}
	config.Filters.Space = stores.Space.WithReadyzLine
	return r.applyMigration(config, guard)
}

// newSpaceGuard returns what keeps a reserve in memory and in the store, which is the embedded etcd if there is one.
func newSpaceGuard(store *etcd.Server, memory *space.Memory) *space.Guard {
	guard := space.New(nil, memory)
	if store != nil {
		guard = space.New(store, memory)
	}
	guard.Register()
	return guard
}

func (r *run) applyServing(generic *server.RecommendedConfig) error {
	if err := r.Recommended.SecureServing.ApplyToConfig(&generic.Config); err != nil {
		return flagerror.Wrap("tls-cert-file", err, "give a certificate and in --tls-private-key-file its key, both PEM")
	}
	servingcert.Show(generic.SecureServing.Cert)
	r.checkManagedCert(&generic.Config)
	return flagerror.Wrap("audit-policy-file", r.Recommended.Audit.ApplyTo(&generic.Config),
		"correct the audit flags and the files that they name")
}

// applyMainCluster sets up everything that needs the main API: who a caller is, what he may do, and admission.
func (r *run) applyMainCluster(ctx context.Context, config *apiserver.Config, main *mainapi.Clients, schemas admission.Schemas) error {
	generic := config.Generic
	generic.ClientConfig = main.Config
	generic.SharedInformerFactory = mainapi.NewInformers(main.Informers)
	if err := r.applyAuthentication(ctx, config, main.Hold); err != nil {
		return err
	}
	authorizer, err := callers.NewAuthorizer(r.Recommended.Authorization)
	if err != nil {
		return err
	}
	generic.Authorization.Authorizer = authorizer
	if err := r.Recommended.Features.ApplyTo(&generic.Config, main.Kube, generic.SharedInformerFactory); err != nil {
		return flagerror.Wrap("enable-priority-and-fairness", err, "correct the limits on requests in flight")
	}
	return r.applyAdmission(ctx, generic, main, schemas)
}

func (r *run) applyAdmission(ctx context.Context, generic *server.RecommendedConfig, main *mainapi.Clients,
	schemas admission.Schemas) error {
	options := *r.Recommended.Admission
	var unsupported []string
	err := r.wait.Retry(ctx, "the admission resources of the main cluster", func(context.Context) (err error) {
		unsupported, err = admission.Unsupported(main.Kube.Discovery())
		return err
	})
	if err != nil {
		return flagerror.Wrap("kubeconfig", err, "make sure that the main cluster's API server runs")
	}
	for _, plugin := range unsupported {
		klog.FromContext(ctx).Info("Admission plugin is off: the main cluster does not serve its configuration in "+
			"admissionregistration.k8s.io/v1", "plugin", plugin)
		options.DisablePlugins = append(options.DisablePlugins, plugin)
	}
	err = options.ApplyTo(&generic.Config, generic.SharedInformerFactory, main.Kube, main.DynamicInformers, r.Gate,
		generic.EffectiveVersion, admission.Initializers(main.Kube, schemas, r.APIGroups.Stored())...)
	return flagerror.Wrap("admission-control-config-file", err, "correct the admission flags and the files that they name")
}

// applySelfCheck makes the server say what it knows about itself. It comes after everything that adds readiness checks.
func (r *run) applySelfCheck(config *apiserver.Config, main *mainapi.Clients, embedded bool, objects *unreadable.Objects) {
	checker := &selfcheck.Checker{
		Main: main.Kube, Transport: r.Recommended.Etcd.StorageConfig.Transport, Embedded: embedded,
		Unreadable: objects.List, Ready: config.Generic.ReadyzChecks, Gates: features.States(config.Gates),
	}
	if serving := config.Generic.SecureServing; serving != nil {
		checker.Certificate = serving.Cert
	}
	config.SelfCheck = checker
}

// applyWebhooks answers kube-apiserver's questions about pods.
func (r *run) applyWebhooks(config *apiserver.Config) {
	if authority := config.Generic.SecureServing.ClientCA; authority != nil {
		r.pods.follow(authority)
	}
	config.Filters.Webhooks = func(next http.Handler) http.Handler { return r.pods.handler(next, r.PodWebhookClientNames) }
}
