// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/config"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// upstreamConfig has every field that upstream's controller reads.
const upstreamConfig = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {port: 9444, host: example, certDir: /certs}
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 4s
  resourceLock: leases
  resourceName: lease
  resourceNamespace: jobset-system
metrics: {bindAddress: ":9443", certDir: /metrics}
health: {healthProbeBindAddress: ":9081", readinessEndpointName: ready, livenessEndpointName: /live}
tls: {minVersion: VersionTLS12, cipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}
internalCertManagement: {enable: true, webhookServiceName: service, webhookSecretName: secret}
clientConnection: {qps: 50.5, burst: 60}
featureGates: {RestartJob: true, ElasticJobSet: true, TLSOptions: true}
`

// configured returns the options that a file and flags make.
func configured(t *testing.T, file string, args ...string) (*Options, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, section := range o.Flags().FlagSets {
		flags.AddFlagSet(section)
	}
	if err := flags.Parse(append(args, "--config="+path)); err != nil {
		t.Fatal(err)
	}
	if err := o.Complete(t.Context(), flags); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), path, "FILE"))
	}
	return o, o.Validate()
}

// settings are the options that a file can set.
type settings struct {
	QPS                                  float32
	Burst                                int
	LeaderElection                       config.LeaderElectionConfiguration
	Metrics, Certs, Health, Ready, Alive string
	MinVersion                           string
	CipherSuites                         []string
	RestartJob, ElasticJobSet            bool
}

func settingsOf(o *Options) settings {
	return settings{
		QPS: o.QPS, Burst: o.Burst, LeaderElection: o.LeaderElection, Metrics: o.MetricsBindAddress, Certs: o.MetricsCertDir,
		Health: o.HealthBindAddress, Ready: o.ReadinessEndpoint, Alive: o.LivenessEndpoint,
		MinVersion: o.TLSMinVersion, CipherSuites: o.TLSCipherSuites,
		RestartJob: o.gate.Enabled("RestartJob"), ElasticJobSet: o.gate.Enabled("ElasticJobSet"),
	}
}

func TestConfigFile(t *testing.T) {
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	defaults := settings{
		QPS: 500, Burst: 500, Metrics: ":8443", Health: ":8081", Ready: "/readyz", Alive: "/healthz",
		LeaderElection: config.LeaderElectionConfiguration{
			LeaderElect: true, LeaseDuration: seconds(15), RenewDeadline: seconds(10), RetryPeriod: seconds(2),
			ResourceLock: "leases", ResourceName: "6d4f6a47.jobset.x-k8s.io",
		},
	}
	all := settings{
		QPS: 50.5, Burst: 60, Metrics: ":9443", Certs: "/metrics", Health: ":9081", Ready: "/ready", Alive: "/live",
		MinVersion: "VersionTLS12", CipherSuites: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, RestartJob: true, ElasticJobSet: true,
		LeaderElection: config.LeaderElectionConfiguration{
			LeaseDuration: seconds(30), RenewDeadline: seconds(20), RetryPeriod: seconds(4),
			ResourceLock: "leases", ResourceName: "lease", ResourceNamespace: "jobset-system",
		},
	}
	const head = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
	flagged := all
	flagged.QPS, flagged.Metrics, flagged.ElasticJobSet = 7, "0", false
	flagged.LeaderElection.LeaderElect, flagged.LeaderElection.LeaseDuration = true, seconds(60)
	off := defaults
	off.Metrics, off.Health = "0", "0"
	for name, tc := range map[string]struct {
		file string
		args []string
		want settings
	}{
		"a file without settings leaves the defaults": {head, nil, defaults},
		"empty settings leave the defaults":           {head + "metrics: {bindAddress: \"\"}\nleaderElection: {}\n", nil, defaults},
		"every field is taken":                        {upstreamConfig, nil, all},
		"flags win, gate by gate": {upstreamConfig, []string{"--kube-api-qps=7", "--metrics-bind-address=0", "--feature-gates=ElasticJobSet=false",
			"--leader-elect", "--leader-elect-lease-duration=60s"}, flagged},
		"a flag that repeats the default wins": {head + "metrics: {bindAddress: \":1\"}", []string{"--metrics-bind-address=:8443"}, defaults},
		"0 switches endpoints off":             {head + "metrics: {bindAddress: \"0\"}\nhealth: {healthProbeBindAddress: \"0\"}", nil, off},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := configured(t, tc.file, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, settingsOf(o)); d != "" {
				t.Errorf("settings (-want +got):\n%s", d)
			}
		})
	}
}

func TestBadConfigFiles(t *testing.T) {
	const head = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
	for name, tc := range map[string]struct{ file, want string }{
		"an unknown field":         {head + "metrics: {adress: \":1\"}", `--config: FILE: unknown field "metrics.adress"`},
		"a field in another case":  {head + "Metrics: {}", `--config: FILE: unknown field "Metrics"`},
		"a field that is twice":    {head + "tls: {}\ntls: {}", `--config: FILE: must be YAML: yaml: unmarshal errors: line 4: key "tls" already set in map`},
		"a wrong type":             {head + "featureGates: {RestartJob: maybe}", `--config: FILE: json: cannot unmarshal string into Go struct field configuration.featureGates of type bool`},
		"no YAML":                  {"}", `--config: FILE: must be YAML: yaml: did not find expected node content`},
		"an empty file":            {"", `--config: FILE: must be of apiVersion config.jobset.x-k8s.io/v1alpha1 and kind Configuration, not "" and ""`},
		"another kind":             {"apiVersion: v1\nkind: ConfigMap", `--config: FILE: must be of apiVersion config.jobset.x-k8s.io/v1alpha1 and kind Configuration, not "v1" and "ConfigMap"`},
		"an unknown gate":          {head + "featureGates: {Foo: true}", `--config: featureGates: unknown gate "Foo"; known are ` + gateNames()},
		"a locked gate":            {head + "featureGates: {TLSOptions: false}", `--config: featureGates: TLSOptions is always true; leave it out`},
		"an address without port":  {head + "metrics: {bindAddress: localhost}", `--config: metrics.bindAddress: must be [host]:port, or 0 to switch it off, not "localhost"`},
		"no requests":              {head + "clientConnection: {qps: 0}", `--config: clientConnection.qps: must not be 0; use a negative number for no limit`},
		"another lock":             {head + "leaderElection: {resourceLock: endpoints}", `--config: leaderElection.resourceLock: must be leases, not "endpoints"`},
		"an old version of TLS":    {head + "tls: {minVersion: VersionTLS11}", `--config: tls.minVersion: must be VersionTLS12 or VersionTLS13, not "VersionTLS11"`},
		"suites that nobody takes": {head + "tls: {minVersion: VersionTLS13, cipherSuites: [TLS_AES_128_GCM_SHA256]}", `--config: tls.cipherSuites: must be left out with VersionTLS13, whose cipher suites cannot be chosen`},
		"an unknown suite":         {head + "tls: {cipherSuites: [X]}", `--config: tls.cipherSuites: Cipher suite X not supported or doesn't exist; known are ` + strings.Join(cliflag.TLSCipherPossibleValues(), ", ")},
		"one name for two":         {head + "health: {readinessEndpointName: healthz}", `--config: health.readinessEndpointName: must not be that of liveness, "/healthz"`},
		"avoiding nodes too long":  {head + "avoidFailedNodes: 721h", `--config: avoidFailedNodes: must be from 0s, for not at all, to 720h, such as 1h, not 721h0m0s`},
		"avoiding nodes in words":  {head + "avoidFailedNodes: soon", `--config: FILE: time: invalid duration "soon"`},
		"a placement nobody knows": {head + "placement: {whenFull: never}", `--config: placement.whenFull: must be affinity or wait, not "never"`},
		"a name that is a pattern": {head + "health: {livenessEndpointName: \"{x}\"}", `--config: health.livenessEndpointName: must be of letters, digits, dots, dashes and slashes, not "/{x}"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configured(t, tc.file)
			if err == nil {
				t.Fatal("no error")
			}
			if d := cmp.Diff(tc.want, flagerror.OneLine(err)); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}

func TestFieldsThatHaveNoEffectAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(upstreamConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := readConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"webhook", "internalCertManagement"}, c.withoutEffect()); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

// TestServingAsConfigured opens the endpoints and connects to them.
func TestServingAsConfigured(t *testing.T) {
	o, err := configured(t, `{apiVersion: config.jobset.x-k8s.io/v1alpha1, kind: Configuration, tls: {minVersion: VersionTLS13},
		metrics: {bindAddress: "127.0.0.1:0"}, health: {healthProbeBindAddress: "127.0.0.1:0", livenessEndpointName: alive}}`)
	if err != nil {
		t.Fatal(err)
	}
	endpoints, err := o.listen(clients{main: fake.NewClientset()}, leaderelection.NewLeaderHealthzAdaptor(time.Second), func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, len(endpoints))
	for _, e := range endpoints {
		go func() { served <- e.serve(ctx) }()
	}
	codes := map[string]int{}
	for _, path := range []string{"/alive", "/readyz", "/healthz"} {
		response, err := http.Get("http://" + endpoints[0].listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		codes[path] = response.StatusCode
	}
	if d := cmp.Diff(map[string]int{"/alive": 200, "/readyz": 200, "/healthz": 404}, codes); d != "" {
		t.Errorf("codes of health endpoints (-want +got):\n%s", d)
	}
	for version, want := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", endpoints[1].listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
		if got := err == nil; got != want {
			t.Errorf("a connection with at most TLS %x: %t (%v), want %t", version, got, err, want)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	cancel()
	for range endpoints {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
