// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/admission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// config returns the configuration of the server, without its storage.
func (o *Options) config(ctx context.Context, main *clients) (*apiserver.Config, error) {
	scheme, codecs := apiserver.NewScheme()
	generic := server.NewRecommendedConfig(codecs)
	if err := o.Limits.ApplyTo(&generic.Config); err != nil {
		return nil, fmt.Errorf("applying limits: %w", err)
	}
	generic.FeatureGate = o.gate
	generic.EffectiveVersion = newEffectiveVersion()
	if err := o.APIEnablement.ApplyTo(&generic.Config, o.apiGroups.Enabled(), o.apiGroups); err != nil {
		return nil, wrapFlagError("runtime-config", err, runtimeConfigAdvice)
	}
	if address, err := o.Recommended.SecureServing.DefaultExternalAddress(); err == nil {
		generic.PublicAddress = address
	}

	namer := apiserver.NewDefinitionNamer()
	generic.OpenAPIConfig = server.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title, generic.OpenAPIConfig.Info.Version = componentName, generic.EffectiveVersion.Info().GitVersion
	generic.OpenAPIV3Config = server.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title, generic.OpenAPIV3Config.Info.Version = componentName, generic.EffectiveVersion.Info().GitVersion

	if err := o.Recommended.EgressSelector.ApplyTo(&generic.Config); err != nil {
		return nil, wrapFlagError("egress-selector-config-file", err, "correct the file")
	}
	if err := o.Recommended.Traces.ApplyTo(generic.EgressSelector, &generic.Config); err != nil {
		return nil, wrapFlagError("tracing-config-file", err, "correct the file")
	}
	if err := o.applyServing(generic); err != nil {
		return nil, err
	}
	names, err := apiserver.NewDefinitionNames()
	if err != nil {
		return nil, fmt.Errorf("naming the definitions of what policies change: %w", err)
	}
	schemas := admission.Schemas{Config: generic.OpenAPIV3Config, Names: names}
	config := &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs, APIGroups: o.apiGroups, Gates: o.gate}
	config.Memory = space.NewMemory()
	applyRouting(ctx, config, main)
	return config, o.applyMainCluster(ctx, config, main, schemas)
}

// applyStorage stores objects as --storage-media-type says, each in the storage version of its group. The storage must
// be reachable; store is the embedded etcd, if there is one, guard what keeps the server from answering for the wrong
// store, and objects takes those that cannot be read.
func (o *Options) applyStorage(config *apiserver.Config, store *etcd.Server, guard *storecheck.Guard, objects *unreadable.Objects) error {
	options := *o.Recommended.Etcd
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
	if store != nil {
		allowSlowDisk(&options)
	}
	if err := options.ApplyTo(&config.Generic.Config); err != nil {
		return wrapFlagError("encryption-provider-config", err, "correct the file")
	}
	if store != nil {
		checkReadinessOnce(&config.Generic.Config)
		tolerateSlowDisk(&config.Generic.Config, clock.RealClock{})
	}
	sizes, err := genericoptions.ParseWatchCacheSizes(options.WatchCacheSizes)
	if err != nil {
		return wrapFlagError("watch-cache-sizes", err, "correct the list")
	}
	stores := apiserver.Stores{
		Codec: shared, Unreadable: objects, StoreCheck: guard, Space: newSpaceGuard(store, config.Memory),
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
	return o.applyMigration(config, guard)
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

func (o *Options) applyServing(generic *server.RecommendedConfig) error {
	if err := o.Recommended.SecureServing.ApplyToConfig(&generic.Config); err != nil {
		return wrapFlagError("tls-cert-file", err, "give a certificate and in --tls-private-key-file its key, both PEM")
	}
	servingcert.Show(generic.SecureServing.Cert)
	o.checkManagedCert(&generic.Config)
	return wrapFlagError("audit-policy-file", o.Recommended.Audit.ApplyTo(&generic.Config),
		"correct the audit flags and the files that they name")
}

// applyMainCluster sets up everything that needs the main API: who a caller is, what he may do, and admission.
func (o *Options) applyMainCluster(ctx context.Context, config *apiserver.Config, main *clients, schemas admission.Schemas) error {
	generic := config.Generic
	generic.ClientConfig = main.config
	generic.SharedInformerFactory = newInformers(main.informers)
	if err := o.applyAuthentication(ctx, config, main.hold); err != nil {
		return err
	}
	authorizer, err := newAuthorizer(o.Recommended.Authorization)
	if err != nil {
		return err
	}
	generic.Authorization.Authorizer = authorizer
	if err := o.Recommended.Features.ApplyTo(&generic.Config, main.kube, generic.SharedInformerFactory); err != nil {
		return wrapFlagError("enable-priority-and-fairness", err, "correct the limits on requests in flight")
	}
	return o.applyAdmission(ctx, generic, main, schemas)
}

func (o *Options) applyAdmission(ctx context.Context, generic *server.RecommendedConfig, main *clients, schemas admission.Schemas) error {
	options := *o.Recommended.Admission
	var unsupported []string
	err := o.retryMain(ctx, "the admission resources of the main cluster", func(context.Context) (err error) {
		unsupported, err = admission.Unsupported(main.kube.Discovery())
		return err
	})
	if err != nil {
		return wrapFlagError("kubeconfig", err, "make sure that the main cluster's API server runs")
	}
	for _, plugin := range unsupported {
		klog.FromContext(ctx).Info("Admission plugin is off: the main cluster does not serve its configuration in "+
			"admissionregistration.k8s.io/v1", "plugin", plugin)
		options.DisablePlugins = append(options.DisablePlugins, plugin)
	}
	err = options.ApplyTo(&generic.Config, generic.SharedInformerFactory, main.kube, main.dynamicInformers, o.gate,
		generic.EffectiveVersion, admission.Initializers(main.kube, schemas, o.apiGroups.Stored())...)
	return wrapFlagError("admission-control-config-file", err, "correct the admission flags and the files that they name")
}

// applySelfCheck makes the server say what it knows about itself. It comes after everything that adds readiness checks.
func (o *Options) applySelfCheck(config *apiserver.Config, main *clients, embedded bool, objects *unreadable.Objects) {
	checker := &selfcheck.Checker{
		Main: main.kube, Transport: o.Recommended.Etcd.StorageConfig.Transport, Embedded: embedded,
		Unreadable: objects.List, Ready: config.Generic.ReadyzChecks, Gates: features.States(config.Gates),
	}
	if serving := config.Generic.SecureServing; serving != nil {
		checker.Certificate = serving.Cert
	}
	config.SelfCheck = checker
}

// applyWebhooks answers kube-apiserver's questions about pods.
func (o *Options) applyWebhooks(config *apiserver.Config) {
	if authority := config.Generic.SecureServing.ClientCA; authority != nil {
		o.pods.follow(authority)
	}
	config.Filters.Webhooks = func(next http.Handler) http.Handler { return o.pods.handler(next, o.PodWebhookClientNames) }
}
