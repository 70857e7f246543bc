// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/config"
	leaderelectionconfig "k8s.io/component-base/config/options"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

const (
	// defaultLease is the name of the lease.
	defaultLease = helper.ControllerLease
	// disabledAddress switches an endpoint off.
	disabledAddress = "0"
)

// endpointPattern leaves out what patterns of paths give a meaning to.
var endpointPattern = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+$`)

// Options are the settings of jobset-controller.
type Options struct {
	// Kubeconfig is the file with the address and credentials of the main API; empty inside a cluster.
	Kubeconfig string
	// QPS and Burst limit the requests to each API; a negative QPS lifts the limit.
	QPS   float32
	Burst int
	// LeaderElection makes one of several replicas the one that works.
	LeaderElection config.LeaderElectionConfiguration
	// MetricsBindAddress and HealthBindAddress are where the endpoints listen; "0" for nowhere.
	MetricsBindAddress, HealthBindAddress string
	// MetricsCertDir holds tls.crt and tls.key for the metrics endpoint; empty for a self-signed certificate.
	MetricsCertDir string
	// Profiling serves profiles beside the metrics.
	Profiling bool
	// Controllers are the names of the controllers to run; '*' is all of them, and a name after a dash is left out.
	Controllers []string
	// Workers are the numbers of objects that are worked on at a time, by the name of the controller.
	Workers map[string]*int
	// GangProvider is the scheduler of gangs for which LeaderWorkerSets get PodGroups; empty for none.
	GangProvider string
	// PlacementWhenFull is what happens to JobSets with exclusive placement for whose Jobs there are not enough topology domains.
	PlacementWhenFull string
	// PlacementMoveAfter is how long pods of a Job with exclusive placement wait for nodes before the Job moves to another topology domain.
	PlacementMoveAfter time.Duration
	// AvoidFailedNodes is for how long the pods of JobSets keep off nodes on which an attempt failed; 0 for not at all.
	AvoidFailedNodes time.Duration
	// ServiceEndpoints is who writes the addresses of the headless Services of JobSets without the annotation.
	ServiceEndpoints string
	// ServiceEndpointsCanary is whether the cluster must resolve a canary record before this program writes addresses.
	ServiceEndpointsCanary bool
	// Logs is the configuration of logging.
	Logs *logsapi.LoggingConfiguration

	// ReadinessEndpoint and LivenessEndpoint are the paths of the health endpoints.
	ReadinessEndpoint, LivenessEndpoint string
	// TLSMinVersion and TLSCipherSuites apply to /metrics; empty for the defaults of Go.
	TLSMinVersion   string
	TLSCipherSuites []string
	// ConfigFile holds settings for which no flag is given; empty for none.
	ConfigFile string

	gate         featuregate.MutableVersionedFeatureGate
	featureGates map[string]string
	// fileGates are the feature gates of the file.
	fileGates map[string]bool
	// fromFile are the fields of the file that were given instead of a flag, by the name of the flag.
	fromFile map[string]string
}

// NewOptions returns the defaults.
func NewOptions() (*Options, error) {
	gate, err := features.NewGate()
	if err != nil {
		return nil, fmt.Errorf("setting up feature gates: %w", err)
	}
	return &Options{
		QPS:   500,
		Burst: 500,
		LeaderElection: config.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:  "leases",
			ResourceName:  defaultLease,
		},
		MetricsBindAddress: ":8443",
		HealthBindAddress:  ":8081",
		ReadinessEndpoint:  "/readyz",
		LivenessEndpoint:   "/healthz",
		Controllers:        []string{allControllers},
		Workers:            defaultWorkers(),
		PlacementWhenFull:  string(placement.WhenFullAffinity),
		PlacementMoveAfter: placement.DefaultMoveAfter,
		ServiceEndpoints:   jobsetv1alpha2.ServiceEndpointsAuto,

		ServiceEndpointsCanary: true,

		Logs: logsapi.NewLoggingConfiguration(),
		gate: gate,
	}, nil
}

// Flags returns all flags in sections, for a readable help.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	o.addClientFlags(sections.FlagSet("clients"))
	leaderelectionconfig.BindLeaderElectionFlags(&o.LeaderElection, sections.FlagSet("leader election"))
	o.addEndpointFlags(sections.FlagSet("endpoints"))
	o.addControllerFlags(sections.FlagSet("controller"))
	logsapi.AddFlags(o.Logs, sections.FlagSet("logs"))
	return sections
}

func (o *Options) addClientFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"File with the address and credentials of kube-apiserver. Not needed inside a cluster.")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "Requests per second to each API. A negative value removes the limit.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Maximum burst of requests to each API.")
}

func (o *Options) addEndpointFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"Where /metrics is served over TLS, to users who may get the non-resource URL /metrics. 0 switches it off.")
	fs.StringVar(&o.MetricsCertDir, "metrics-cert-dir", o.MetricsCertDir,
		"Directory with tls.crt and tls.key for /metrics, read again when they change. Empty for a self-signed certificate.")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling,
		"Serve profiles under /debug/pprof/ beside /metrics, to users who may get the non-resource URLs /debug/pprof/*.")
	fs.StringVar(&o.HealthBindAddress, "health-probe-bind-address", o.HealthBindAddress,
		"Where /healthz and /readyz are served over plain HTTP. 0 switches them off.")
}

func (o *Options) addControllerFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile,
		"File with a Configuration of config.jobset.x-k8s.io/v1alpha1, as upstream's controller reads it. Flags win over it.")
	o.addControllersFlags(fs)
	known := strings.Join(o.gate.KnownFeatures(), "\n")
	fs.Var(cliflag.NewMapStringString(&o.featureGates), "feature-gates",
		"Comma-separated list of name=true|false. Known gates:\n"+known)
}

// Validate returns the first invalid setting.
func (o *Options) Validate() error {
	for _, check := range []func() error{o.validateGates, o.validateEndpoints, o.validateTLS, o.validateLeaderElection, o.validateNumbers,
		o.validateControllers, o.validateGang, o.validatePlacement, o.validateAvoidTime, o.validateServiceEndpoints} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) validateNumbers() error {
	switch {
	case o.QPS == 0:
		return o.flagError("kube-api-qps", "must not be 0; use a negative number for no limit")
	case o.QPS > 0 && o.Burst < 1:
		return o.flagError("kube-api-burst", "must be 1 or more, not %d", o.Burst)
	}
	return nil
}

// validateGates sets the feature gates, which is how they are checked.
func (o *Options) validateGates() error {
	values := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(o.fileGates)) {
		if err := o.checkGate("config: featureGates", name, o.fileGates[name]); err != nil {
			return err
		}
		values[name] = o.fileGates[name]
	}
	for _, name := range slices.Sorted(maps.Keys(o.featureGates)) {
		value, err := strconv.ParseBool(o.featureGates[name])
		if _, known := o.gate.GetAll()[featuregate.Feature(name)]; known && err != nil {
			return o.flagError("feature-gates", "%s must be true or false, not %q", name, o.featureGates[name])
		}
		if err := o.checkGate("feature-gates", name, value); err != nil {
			return err
		}
		values[name] = value
	}
	if err := o.gate.SetFromMap(values); err != nil {
		return o.flagError("feature-gates", "%w", err)
	}
	return nil
}

func (o *Options) checkGate(source, name string, value bool) error {
	spec, known := o.gate.GetAll()[featuregate.Feature(name)]
	if !known {
		return o.flagError(source, "unknown gate %q; known are %s", name, gateNames())
	}
	if spec.LockToDefault && value != spec.Default {
		return o.flagError(source, "%s is always %t; leave it out", name, spec.Default)
	}
	return nil
}

func gateNames() string {
	var names []string
	for name := range features.Specs() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (o *Options) validateEndpoints() error {
	for flag, address := range map[string]string{
		"metrics-bind-address":      o.MetricsBindAddress,
		"health-probe-bind-address": o.HealthBindAddress,
	} {
		if address == disabledAddress {
			continue
		}
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return o.flagError(flag, "must be [host]:port, or 0 to switch it off, not %q", address)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return o.flagError(flag, "the port must be a number from 0 to 65535, not %q", port)
		}
	}
	for field, path := range map[string]string{"readinessEndpointName": o.ReadinessEndpoint, "livenessEndpointName": o.LivenessEndpoint} {
		if !endpointPattern.MatchString(path) {
			return fmt.Errorf("--config: health.%s: must be of letters, digits, dots, dashes and slashes, not %q", field, path)
		}
	}
	if o.ReadinessEndpoint == o.LivenessEndpoint {
		return fmt.Errorf("--config: health.readinessEndpointName: must not be that of liveness, %q", o.LivenessEndpoint)
	}
	return nil
}

func (o *Options) validateLeaderElection() error {
	e := o.LeaderElection
	switch {
	case !e.LeaderElect:
		return nil
	case e.ResourceLock != "leases":
		return o.flagError("leader-elect-resource-lock", "must be leases, not %q", e.ResourceLock)
	case e.ResourceName == "":
		return o.flagError("leader-elect-resource-name", "must not be empty")
	case e.RetryPeriod.Duration <= 0:
		return o.flagError("leader-elect-retry-period", "must be more than 0, not %s", e.RetryPeriod.Duration)
	case float64(e.RenewDeadline.Duration) <= 1.2*float64(e.RetryPeriod.Duration):
		return o.flagError("leader-elect-renew-deadline", "must be more than 1.2 times --leader-elect-retry-period (%s), not %s",
			e.RetryPeriod.Duration, e.RenewDeadline.Duration)
	case e.LeaseDuration.Duration <= e.RenewDeadline.Duration:
		return o.flagError("leader-elect-lease-duration", "must be more than --leader-elect-renew-deadline (%s), not %s",
			e.RenewDeadline.Duration, e.LeaseDuration.Duration)
	}
	return nil
}

// flagError blames a flag, or the field of the configuration file that was given instead: what is wrong with its value,
// and what to do.
func (o *Options) flagError(flag, format string, args ...any) error {
	if field, found := o.fromFile[flag]; found {
		return fmt.Errorf("--config: "+field+": "+format, args...)
	}
	return fmt.Errorf("--"+flag+": "+format, args...)
}
