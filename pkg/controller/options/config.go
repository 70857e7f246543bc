// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	configVersion = "config.jobset.x-k8s.io/v1alpha1"
	configKind    = "Configuration"
)

// configuration is the content of the configuration file (docs/reference/jobset.md#configuration-file). Empty values count as absent.
type configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Webhook                *webhookConfig                                   `json:"webhook"`
	LeaderElection         *componentbaseconfig.LeaderElectionConfiguration `json:"leaderElection"`
	Metrics                metricsConfig                                    `json:"metrics"`
	Health                 healthConfig                                     `json:"health"`
	TLS                    tlsConfig                                        `json:"tls"`
	InternalCertManagement *certConfig                                      `json:"internalCertManagement"`
	ClientConnection       clientConfig                                     `json:"clientConnection"`
	FeatureGates           map[string]bool                                  `json:"featureGates"`
	Gang                   *gangConfig                                      `json:"gangSchedulingManagement"`
	AvoidFailedNodes       *metav1.Duration                                 `json:"avoidFailedNodes"`
	Placement              placementConfig                                  `json:"placement"`
}

// placementConfig is about JobSets with exclusive placement. Upstream's controller does not know it.
type placementConfig struct {
	// WhenFull is what happens without enough topology domains: affinity or wait.
	WhenFull string `json:"whenFull"`
	// MoveAfter is how long pods wait for nodes before their Job moves to another topology domain.
	MoveAfter *metav1.Duration `json:"moveAfter"`
}

type gangConfig struct {
	SchedulerProvider string `json:"schedulerProvider"`
}

type webhookConfig struct {
	Port    *int   `json:"port"`
	Host    string `json:"host"`
	CertDir string `json:"certDir"`
}

type metricsConfig struct {
	BindAddress string `json:"bindAddress"`
	CertDir     string `json:"certDir"`
}

type healthConfig struct {
	HealthProbeBindAddress string `json:"healthProbeBindAddress"`
	ReadinessEndpointName  string `json:"readinessEndpointName"`
	LivenessEndpointName   string `json:"livenessEndpointName"`
}

type tlsConfig struct {
	MinVersion   string   `json:"minVersion"`
	CipherSuites []string `json:"cipherSuites"`
}

type certConfig struct {
	Enable             *bool  `json:"enable"`
	WebhookServiceName string `json:"webhookServiceName"`
	WebhookSecretName  string `json:"webhookSecretName"`
}

type clientConfig struct {
	QPS   *float32 `json:"qps"`
	Burst *int32   `json:"burst"`
}

// readConfig reads a configuration file. What it does not know is an error.
func readConfig(path string) (*configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("must name a readable file: %w", err)
	}
	// Converting strictly finds keys that are there twice.
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return nil, fmt.Errorf("%s: must be YAML: %w", path, err)
	}
	var config configuration
	unknown, err := json.UnmarshalStrict(data, &config)
	if err = errors.Join(append([]error{err}, unknown...)...); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if config.APIVersion != configVersion || config.Kind != configKind {
		return nil, fmt.Errorf("%s: must be of apiVersion %s and kind %s, not %q and %q", path, configVersion, configKind, config.APIVersion,
			config.Kind)
	}
	return &config, nil
}

// withoutEffect returns the fields that are set and mean nothing here: JobSets need no webhook.
func (c *configuration) withoutEffect() []string {
	var fields []string
	if c.Webhook != nil {
		fields = append(fields, "webhook")
	}
	if c.InternalCertManagement != nil {
		fields = append(fields, "internalCertManagement")
	}
	return slices.Clip(fields)
}
