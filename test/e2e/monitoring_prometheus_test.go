// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// prometheus is the program of hack/prometheus while it reads the metrics of a cluster.
type prometheus struct {
	*kubectl
	address string
}

// monitoredCluster is the label of the targets, as a Prometheus of several clusters has it.
const monitoredCluster = "first"

const prometheusConfiguration = `global: {scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 5s}
rule_files: [%[1]s/artifacts/monitoring/rules.yaml]
scrape_configs:
- job_name: jobset-apiserver
  scheme: https
  authorization: {credentials_file: %[2]s}
  tls_config: {ca_file: %[3]s/pki/apiserver/ca.crt, server_name: jobset-apiserver.jobset-system.svc}
  static_configs: [{targets: ["127.0.0.1:%[4]s"], labels: {cluster: %[7]s}}]
- job_name: jobset-controller
  scheme: https
  authorization: {credentials_file: %[2]s}
  tls_config: {insecure_skip_verify: true}
  static_configs: [{targets: ["127.0.0.1:%[5]s"], labels: {cluster: %[7]s}}]
- job_name: apiserver
  scheme: https
  authorization: {credentials_file: %[2]s}
  tls_config: {insecure_skip_verify: true}
  static_configs: [{targets: ["%[6]s"], labels: {cluster: %[7]s}}]
`

// startPrometheus builds and starts the program. It ends with the test.
func startPrometheus(k *kubectl, token string) *prometheus {
	k.Helper()
	program := filepath.Join(k.cluster.Root, "_output", "prometheus") // a program that is up to date is not linked again
	build := exec.CommandContext(k.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	build.Dir, build.Env = filepath.Join(k.cluster.Root, "hack", "prometheus"), append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		k.Fatalf("building hack/prometheus: %v\n%s", err, out)
	}
	server, err := url.Parse(k.ok("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
	if err != nil {
		k.Fatal(err)
	}
	file := filepath.Join(k.TempDir(), "prometheus.yaml")
	content := fmt.Sprintf(prometheusConfiguration, k.cluster.Root, token, k.cluster.Dir, k.port("apiserver"), k.port("controller-metrics"), server.Host, monitoredCluster)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		k.Fatal(err)
	}
	cmd := exec.Command(program, file)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		k.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		// The program ends with its standard input.
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			k.Errorf("hack/prometheus: %v", err)
		}
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		k.Fatalf("hack/prometheus printed no address: %v", err)
	}
	return &prometheus{kubectl: k, address: strings.TrimSpace(address)}
}

// port is one of the cluster's.
func (k *kubectl) port(name string) string {
	k.Helper()
	content, err := os.ReadFile(filepath.Join(k.cluster.Dir, "ports", name))
	if err != nil {
		k.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func (p *prometheus) get(path string, query url.Values, into any) {
	p.Helper()
	response, err := http.Get(p.address + path + "?" + query.Encode())
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		p.Fatalf("%s: status %d, %v: %.200s", path, response.StatusCode, err, content)
	}
}

// prometheusAnswer is what a query returns: the number of its series, of those with a number, and its selectors that select nothing.
type prometheusAnswer struct {
	Error           string
	Series, Numbers int
	Empty           []string
}

func (p *prometheus) query(text string) (answer prometheusAnswer) {
	p.Helper()
	p.get("/query", url.Values{"query": {text}}, &answer)
	return answer
}

func (p *prometheus) targetsAreUp(jobs ...string) {
	p.Helper()
	p.eventually(func() string {
		targets := map[string]string{}
		p.get("/targets", nil, &targets)
		for _, job := range jobs {
			if targets[job] != "up" {
				return fmt.Sprintf("targets: %q", targets)
			}
		}
		return ""
	})
}
