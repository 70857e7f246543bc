// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
)

// Complete takes from the configuration file what no flag was given for.
func (o *Options) Complete(ctx context.Context, flags *pflag.FlagSet) error {
	if o.ConfigFile == "" {
		return nil
	}
	config, err := readConfig(o.ConfigFile)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if fields := config.withoutEffect(); len(fields) > 0 {
		klog.FromContext(ctx).Info("Fields of the configuration file have no effect, because JobSets need no webhook", "fields", fields)
	}
	from := source{flags: flags, used: map[string]string{}}
	take(from, &o.MetricsBindAddress, config.Metrics.BindAddress, "metrics-bind-address", "metrics.bindAddress")
	take(from, &o.MetricsCertDir, config.Metrics.CertDir, "metrics-cert-dir", "metrics.certDir")
	take(from, &o.HealthBindAddress, config.Health.HealthProbeBindAddress, "health-probe-bind-address", "health.healthProbeBindAddress")
	takeSet(from, &o.QPS, config.ClientConnection.QPS, "kube-api-qps", "clientConnection.qps")
	if burst := config.ClientConnection.Burst; burst != nil {
		takeSet(from, &o.Burst, new(int(*burst)), "kube-api-burst", "clientConnection.burst")
	}
	if config.Gang != nil {
		if config.Gang.SchedulerProvider == "" {
			return fmt.Errorf("--config: gangSchedulingManagement.schedulerProvider: must be one of %s; leave gangSchedulingManagement out for none",
				strings.Join(gangProviders, ", "))
		}
		take(from, &o.GangProvider, config.Gang.SchedulerProvider, gangFlag, "gangSchedulingManagement.schedulerProvider")
	}
	if d := config.AvoidFailedNodes; d != nil {
		takeSet(from, &o.AvoidFailedNodes, &d.Duration, avoidFlag, "avoidFailedNodes")
	}
	take(from, &o.PlacementWhenFull, config.Placement.WhenFull, placementFlag, "placement.whenFull")
	if d := config.Placement.MoveAfter; d != nil {
		takeSet(from, &o.PlacementMoveAfter, &d.Duration, moveFlag, "placement.moveAfter")
	}
	if config.LeaderElection != nil {
		o.takeLeaderElection(from, config.LeaderElection)
	}
	o.TLSMinVersion, o.TLSCipherSuites = config.TLS.MinVersion, config.TLS.CipherSuites
	o.ReadinessEndpoint = endpointPath(config.Health.ReadinessEndpointName, o.ReadinessEndpoint)
	o.LivenessEndpoint = endpointPath(config.Health.LivenessEndpointName, o.LivenessEndpoint)
	o.fileGates, o.fromFile = config.FeatureGates, from.used
	return nil
}

func (o *Options) takeLeaderElection(from source, config *componentbaseconfig.LeaderElectionConfiguration) {
	to := &o.LeaderElection
	takeSet(from, &to.LeaderElect, config.LeaderElect, "leader-elect", "leaderElection.leaderElect")
	take(from, &to.ResourceLock, config.ResourceLock, "leader-elect-resource-lock", "leaderElection.resourceLock")
	take(from, &to.ResourceName, config.ResourceName, "leader-elect-resource-name", "leaderElection.resourceName")
	take(from, &to.ResourceNamespace, config.ResourceNamespace, "leader-elect-resource-namespace", "leaderElection.resourceNamespace")
	for _, d := range []struct {
		to          *metav1.Duration
		value       metav1.Duration
		flag, field string
	}{
		{&to.LeaseDuration, config.LeaseDuration, "leader-elect-lease-duration", "leaderElection.leaseDuration"},
		{&to.RenewDeadline, config.RenewDeadline, "leader-elect-renew-deadline", "leaderElection.renewDeadline"},
		{&to.RetryPeriod, config.RetryPeriod, "leader-elect-retry-period", "leaderElection.retryPeriod"},
	} {
		take(from, d.to, d.value, d.flag, d.field)
	}
}

// source is a configuration file beside flags.
type source struct {
	flags *pflag.FlagSet
	// used are the fields that were taken, by the flag that was not given.
	used map[string]string
}

// take sets an option to the value of a field that is not empty, unless the flag was given.
func take[T comparable](from source, option *T, value T, flag, field string) {
	if value != *new(T) {
		takeSet(from, option, &value, flag, field)
	}
}

// takeSet sets an option to the value of a field that is set, unless the flag was given.
func takeSet[T any](from source, option, value *T, flag, field string) {
	if value != nil && !from.flags.Changed(flag) {
		*option, from.used[flag] = *value, field
	}
}

func endpointPath(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return "/" + strings.TrimPrefix(name, "/")
}
