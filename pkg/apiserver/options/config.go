// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/admission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
	jobsetrest "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/rest"
)

// mainTimeout bounds what is asked of the main API before the server serves.
const mainTimeout = 10 * time.Second

// Config returns the configuration of the server. The storage must be reachable already.
func (o *Options) Config(ctx context.Context) (*apiserver.Config, error) {
	scheme, codecs := apiserver.NewScheme()
	generic := server.NewRecommendedConfig(codecs)
	if err := o.Limits.ApplyTo(&generic.Config); err != nil {
		return nil, fmt.Errorf("applying limits: %w", err)
	}
	generic.FeatureGate = o.gate
	generic.EffectiveVersion = newEffectiveVersion()
	if address, err := o.Recommended.SecureServing.DefaultExternalAddress(); err == nil {
		generic.PublicAddress = address
	}

	namer := openapinamer.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = server.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = componentName
	generic.OpenAPIV3Config = server.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = componentName

	if err := o.applyStorage(generic, scheme, codecs); err != nil {
		return nil, err
	}
	if err := o.applyServing(generic); err != nil {
		return nil, err
	}
	if err := o.applyMainCluster(ctx, generic); err != nil {
		return nil, err
	}
	return &apiserver.Config{Generic: generic, Scheme: scheme, Codecs: codecs, JobSet: jobsetrest.Options{
		InPlaceRestart: o.gate.Enabled(features.InPlaceRestart),
		RestartJob:     o.gate.Enabled(features.RestartJob),
		ElasticJobSet:  o.gate.Enabled(features.ElasticJobSet),
	}}, nil
}

type codecFactory interface {
	runtime.StorageSerializer
	CodecForVersions(runtime.Encoder, runtime.Decoder, runtime.GroupVersioner, runtime.GroupVersioner) runtime.Codec
}

// applyStorage stores objects in the first served version, as --storage-media-type says.
func (o *Options) applyStorage(generic *server.RecommendedConfig, scheme *runtime.Scheme, codecs codecFactory) error {
	etcd := *o.Recommended.Etcd
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), etcd.DefaultStorageMediaType)
	if !ok {
		return flagError("storage-media-type", "%q is not supported: use %s", etcd.DefaultStorageMediaType, runtime.ContentTypeProtobuf)
	}
	versions := runtime.GroupVersioner(v1alpha2.SchemeGroupVersion)
	etcd.StorageConfig.EncodeVersioner = versions
	etcd.StorageConfig.Codec = codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), versions, runtime.InternalGroupVersioner)
	if err := o.Recommended.EgressSelector.ApplyTo(&generic.Config); err != nil {
		return blame("egress-selector-config-file", err, "correct the file")
	}
	if err := o.Recommended.Traces.ApplyTo(generic.EgressSelector, &generic.Config); err != nil {
		return blame("tracing-config-file", err, "correct the file")
	}
	return blame("encryption-provider-config", etcd.ApplyTo(&generic.Config), "correct the file")
}

func (o *Options) applyServing(generic *server.RecommendedConfig) error {
	if err := o.Recommended.SecureServing.ApplyToConfig(&generic.Config); err != nil {
		return blame("tls-cert-file", err, "give a certificate and in --tls-private-key-file its key, both PEM")
	}
	return blame("audit-policy-file", o.Recommended.Audit.ApplyTo(&generic.Config), "correct the audit flags and the files that they name")
}

// applyMainCluster sets up everything that needs the main API: who a caller is, what he may do, and admission.
func (o *Options) applyMainCluster(ctx context.Context, generic *server.RecommendedConfig) error {
	clients, err := o.newClients(ctx)
	if err != nil {
		return err
	}
	generic.ClientConfig = clients.config
	generic.SharedInformerFactory = newInformers(clients.kube)
	if err := o.applyAuthentication(generic); err != nil {
		return err
	}
	if err := o.Recommended.Authorization.ApplyTo(&generic.Authorization); err != nil {
		return blame("authorization-kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	if err := o.Recommended.Features.ApplyTo(&generic.Config, clients.kube, generic.SharedInformerFactory); err != nil {
		return blame("enable-priority-and-fairness", err, "correct the limits on requests in flight")
	}
	return o.applyAdmission(ctx, generic, clients)
}

// clients reach the main API as the server itself.
type clients struct {
	config  *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

func (o *Options) newClients(ctx context.Context) (*clients, error) {
	config, err := loadKubeconfig("kubeconfig", o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	config.UserAgent = componentName + "/" + newEffectiveVersion().Info().GitVersion
	// Requests that wait here hold requests of our own clients up; the main API limits us by its own priorities.
	config.QPS = -1
	c := &clients{config: config}
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.kube, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, blame("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, blame("kubeconfig", err, "give a valid kubeconfig for the main cluster")
	}
	return c, o.awaitMain(ctx, config)
}

// awaitMain makes sure that the main API answers, so that a wrong address is not reported as one of the things that are
// asked of it later.
func (o *Options) awaitMain(ctx context.Context, config *rest.Config) error {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = mainTimeout
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err == nil {
		_, err = client.ServerVersion()
	}
	return blame("kubeconfig", err, "make sure that the main cluster's API server runs and that the file names its address, authority and valid credentials")
}

func (o *Options) applyAdmission(ctx context.Context, generic *server.RecommendedConfig, clients *clients) error {
	options := *o.Recommended.Admission
	unsupported, err := admission.Unsupported(clients.kube.Discovery())
	if err != nil {
		return blame("kubeconfig", err, "make sure that the main cluster's API server runs")
	}
	for _, plugin := range unsupported {
		klog.FromContext(ctx).Info("Admission plugin is off: the main cluster does not serve its configuration in admissionregistration.k8s.io/v1", "plugin", plugin)
		options.DisablePlugins = append(options.DisablePlugins, plugin)
	}
	err = options.ApplyTo(&generic.Config, generic.SharedInformerFactory, clients.kube, clients.dynamic, o.gate,
		generic.EffectiveVersion, admission.Initializers()...)
	return blame("admission-control-config-file", err, "correct the admission flags and the files that they name")
}
