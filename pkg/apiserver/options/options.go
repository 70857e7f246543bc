// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the flags of the server: their defaults, their help, and what can be checked before anything is started.
package options

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/admission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// EtcdPrefix names the server, so that several servers may share an etcd; the store appends group and resource.
const EtcdPrefix = "/registry/jobset-apiserver"

// Options are the settings of the process.
type Options struct {
	// Recommended are the options of an aggregated API server.
	Recommended *genericoptions.RecommendedOptions
	// Limits holds limits and timeouts of the server as a whole.
	Limits *genericoptions.ServerRunOptions
	// Storage chooses between an etcd in this process and one outside.
	Storage *StorageOptions
	// Archive says where runs that have ended are kept.
	Archive ArchiveOptions
	// SANs are the DNS names and IP addresses of the self-signed serving certificate.
	SANs []string
	// ManagedCert is the serving certificate that the servers of an installation make for themselves.
	ManagedCert ManagedCertOptions
	// PodWebhookClientNames are the common names of the client certificates that may call the webhook for pods; empty if
	// no certificate is needed.
	PodWebhookClientNames []string
	// APIEnablement switches API groups off.
	APIEnablement *genericoptions.APIEnablementOptions
	// Logs configures logging.
	Logs *logs.Options
	// Gate has the feature gates of the process.
	Gate featuregate.MutableVersionedFeatureGate
	// APIGroups are the groups that the server knows.
	APIGroups apigroups.List
}

// NewOptions returns the defaults.
func NewOptions() (*Options, error) {
	gate := utilfeature.DefaultMutableFeatureGate
	if err := pinKubernetesVersion(gate); err != nil {
		return nil, err
	}
	if err := gate.AddVersioned(features.Specs()); err != nil {
		return nil, fmt.Errorf("adding feature gates: %w", err)
	}
	// Each event of a watch would be compressed by itself, for each watcher: kube-apiserver asks for it in any case, and
	// undoes it before it passes the event on to clients that do not want it.
	if err := gate.OverrideDefault(genericfeatures.WatchListCompression, false); err != nil {
		return nil, fmt.Errorf("setting the default of feature gate %s: %w", genericfeatures.WatchListCompression, err)
	}
	if err := logsapi.AddFeatureGates(gate); err != nil {
		return nil, fmt.Errorf("adding feature gates of logging: %w", err)
	}
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(ComponentName, NewEffectiveVersion(), nil); err != nil {
		return nil, fmt.Errorf("registering the version: %w", err)
	}
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("registering the version: %w", err)
	}

	o := &Options{
		Recommended: genericoptions.NewRecommendedOptions(EtcdPrefix, nil),
		Limits:      genericoptions.NewServerRunOptionsForComponent(ComponentName, registry),
		Storage:     NewStorageOptions(),
		Archive:     newArchiveOptions(),
		SANs: []string{"localhost", "127.0.0.1", "::1", "jobset-apiserver.jobset-system.svc",
			"jobset-apiserver-webhook.jobset-system.svc"},
		ManagedCert:   ManagedCertOptions{Policy: servingcert.DefaultPolicy},
		APIEnablement: genericoptions.NewAPIEnablementOptions(),
		Logs:          logs.NewOptions(),
		Gate:          gate,
		APIGroups:     apigroups.All(),
	}
	o.Recommended.Etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	o.Recommended.Etcd.DeleteCollectionWorkers = 8
	o.Recommended.FeatureGate = gate
	o.Recommended.Admission = admission.NewOptions(o.APIGroups.Plugins())
	o.Recommended.SecureServing.ServerCert.CertDirectory = ""
	o.Recommended.SecureServing.BindPort = 6443
	o.Recommended.SecureServing.Required = true
	o.Limits.ShutdownDelayDuration = 15 * time.Second
	o.Limits.ShutdownWatchTerminationGracePeriod = 5 * time.Second
	return o, nil
}
