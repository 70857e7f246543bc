// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// handwritten are the manifests whose objects have values in the chart. TestOverlays compares what both render.
var handwritten = map[string]bool{
	"base/apiserver.yaml": true, "base/controller.yaml": true, "base/networkpolicy.yaml": true, "base/rbac/namespace.yaml": true,
	"base/rbac/witness.yaml": true, "base/quota.yaml": true, "base/webhook-service.yaml": true,
}

// conditions are the template expressions on which the chart has the objects of a file of artifacts.
var conditions = map[string]string{
	"base/serving.yaml":            `eq .Values.tls.mode "managed"`,
	"base/rbac/serving.yaml":       `eq .Values.tls.mode "managed"`,
	"base/rbac/ca-bundles.yaml":    `eq .Values.tls.mode "managed"`,
	"base/rbac/controller-leaderw": ".Values.kinds.leaderworkerset",
	"base/webhook.yaml":            ".Values.kinds.leaderworkerset",
	"components/cert-manager/":     `eq .Values.tls.mode "cert-manager"`,
	"components/disaggregatedset/": ".Values.kinds.disaggregatedset",
	"components/embedded-members/": `include "jobset.members" .`,
	"base/rbac/endpoints.yaml": "or .Values.controller.serviceEndpoints.permissions " +
		`(has .Values.controller.serviceEndpoints.mode (list "controller" "auto")) ` +
		`(regexMatch "(^| )--service-endpoints=(controller|auto)" (join " " .Values.controller.extraArgs))`,
	"components/pod-groups/": "or .Values.featureGates.JobSetWorkloadAwareSchedulingAPI " +
		".Values.controller.featureGates.JobSetWorkloadAwareSchedulingAPI " +
		`(regexMatch "(^| )--(gang-scheduling-provider|config)=|JobSetWorkloadAwareSchedulingAPI=true" (join " " .Values.controller.extraArgs))`,
	"components/sequentialjob-workload/": "or .Values.featureGates.SequentialJobWorkload " +
		".Values.controller.featureGates.SequentialJobWorkload",
	"components/upstream-definitions/jobsets":           "and .Values.upstreamDefinitions .Values.kinds.jobset",
	"components/upstream-definitions/leaderworkersets":  "and .Values.upstreamDefinitions .Values.kinds.leaderworkerset",
	"components/upstream-definitions/disaggregatedsets": "and .Values.upstreamDefinitions .Values.kinds.disaggregatedset",
	"components/monitoring/account.yaml":                ".Values.monitoring.serviceMonitors",
	"components/monitoring/servicemonitors.":            ".Values.monitoring.serviceMonitors",
	"components/monitoring/prometheusrule.":             ".Values.monitoring.rules",
	"monitoring/dashboards/":                            ".Values.monitoring.dashboards",
}

// sources are the directories of artifacts of which the generator takes the resources, and the prefixes of their templates.
var sources = map[string]string{
	"base": "", "base/rbac": "rbac-", "components/cert-manager": "cert-manager-", "components/disaggregatedset": "disaggregatedset-",
	"components/embedded-members":       "embedded-members-",
	"components/pod-groups":             "pod-groups-",
	"components/sequentialjob-workload": "sequentialjob-workload-",
	"components/upstream-definitions":   "upstream-definitions-",
	"components/monitoring":             "monitoring-", "monitoring/dashboards": "dashboard-",
}

// kustomization is what the generator reads of a kustomization.yaml.
type kustomization struct {
	Resources          []string `json:"resources"`
	ConfigMapGenerator []struct {
		Name  string   `json:"name"`
		Files []string `json:"files"`
	} `json:"configMapGenerator"`
	GeneratorOptions struct {
		Labels map[string]string `json:"labels"`
	} `json:"generatorOptions"`
}

// generate writes templates/generated in the chart, and removes what it did not write.
func generate(root string) error {
	files, err := templates(filepath.Join(root, "artifacts"))
	if err != nil {
		return err
	}
	dir := filepath.Join(root, chartDir, "templates", "generated")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// templates returns the generated templates by their names.
func templates(artifacts string) (map[string]string, error) {
	files := map[string]string{}
	for source, prefix := range sources {
		k, err := readKustomization(filepath.Join(artifacts, source))
		if err != nil {
			return nil, err
		}
		manifests := map[string]string{}
		for _, name := range k.Resources {
			switch file := path.Join(source, name); {
			case handwritten[file] || sources[file] != "":
			case strings.HasPrefix(name, "../"):
				if _, known := sources[file]; !known {
					return nil, fmt.Errorf("%s: %s: the chart does not know the directory", source, name)
				}
			default:
				content, err := os.ReadFile(filepath.Join(artifacts, file))
				if err != nil {
					return nil, err
				}
				manifests[name] = string(content)
			}
		}
		if err := addConfigMaps(manifests, filepath.Join(artifacts, source), k); err != nil {
			return nil, err
		}
		for name, content := range manifests {
			if files[prefix+name], err = wrap(source+"/"+name, content); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

func readKustomization(dir string) (kustomization, error) {
	var k kustomization
	content, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return k, err
	}
	if err := yaml.Unmarshal(content, &k); err != nil {
		return k, fmt.Errorf("%s: %w", dir, err)
	}
	return k, nil
}

// addConfigMaps adds the ConfigMaps that kustomize makes of files.
func addConfigMaps(manifests map[string]string, dir string, k kustomization) error {
	for _, generator := range k.ConfigMapGenerator {
		var out strings.Builder
		fmt.Fprintf(&out, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: jobset-system\n  labels:\n", generator.Name)
		for _, label := range slices.Sorted(maps.Keys(k.GeneratorOptions.Labels)) {
			value := k.GeneratorOptions.Labels[label]
			if _, err := strconv.Atoi(value); err == nil {
				value = strconv.Quote(value)
			}
			fmt.Fprintf(&out, "    %s: %s\n", label, value)
		}
		out.WriteString("data:\n")
		for _, file := range generator.Files {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			if !strings.HasSuffix(string(content), "\n") {
				return fmt.Errorf("%s: must end with a line break", file)
			}
			fmt.Fprintf(&out, "  %s: |\n    %s\n", file, strings.ReplaceAll(strings.TrimSuffix(string(content), "\n"), "\n", "\n    "))
		}
		manifests[generator.Name+".yaml"] = out.String()
	}
	return nil
}

// wrap returns the manifests of a file of artifacts as a template that says where it is from, and on which condition it applies.
func wrap(source, content string) (string, error) {
	text, err := template(content)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	for prefix, condition := range conditions {
		if strings.HasPrefix(source, prefix) {
			text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
		}
	}
	return fmt.Sprintf("{{- /* Generated from artifacts/%s by make generate. */ -}}\n", source) + text, nil
}
