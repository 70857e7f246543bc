// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// head is what decides how a manifest becomes a template.
type head struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
	} `json:"spec"`
}

// kinds are the values that switch an API group on.
var kinds = map[string]string{
	"jobset.x-k8s.io":           ".Values.kinds.jobset",
	"batch.jobset-apiserver.io": ".Values.kinds.sequentialjob",
	"leaderworkerset.x-k8s.io":  ".Values.kinds.leaderworkerset",
	"disaggregatedset.x-k8s.io": ".Values.kinds.disaggregatedset",
}

// archive is the API group that the server serves whatever the values are.
const archive = "archive.jobset-apiserver.io"

// template returns the manifests of a file as a template of the chart. Comments stay as they are.
func template(content string) (string, error) {
	var out strings.Builder
	for i, document := range strings.Split(content, "\n---\n") {
		text, err := manifest(strings.TrimSuffix(document, "\n") + "\n")
		if err != nil {
			return "", err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// manifest returns one manifest as a template.
func manifest(document string) (string, error) {
	var h head
	if err := yaml.Unmarshal([]byte(document), &h); err != nil {
		return "", err
	}
	if h.Metadata.Name == "" {
		return "", errors.New("an object has no name")
	}
	text := insert(strings.ReplaceAll(document, "{{", `{{ "{{" }}`), h)
	if h.Kind != "APIService" || h.Spec.Group == archive {
		return text, nil
	}
	condition, ok := kinds[h.Spec.Group]
	if !ok {
		return "", fmt.Errorf("APIService %s: the chart has no value for the group %s", h.Metadata.Name, h.Spec.Group)
	}
	return "{{- if " + condition + " }}\n" + text + "{{- end }}\n", nil
}

// partOf is a label that the template jobset.labels has.
const partOf = "app.kubernetes.io/part-of: jobset-apiserver"

// insert adds what the chart adds to an object: labels, annotations, and the authority that kube-apiserver trusts.
func insert(document string, h head) string {
	section := ""
	var out strings.Builder
	for line := range strings.Lines(document) {
		text := strings.TrimRight(line, "\n")
		if text != "" && text[0] != ' ' && text[0] != '#' {
			section = text
		}
		switch {
		case section != "metadata:":
			out.WriteString(line + authority(text, h.Kind))
		case strings.TrimSpace(line) != partOf:
			out.WriteString(line + metadata(text, h))
		}
	}
	return out.String()
}

const labels = "    {{- include \"jobset.labels\" . | nindent 4 }}\n"

// metadata returns what follows a line of the metadata of an object.
func metadata(line string, h head) string {
	switch line {
	case "metadata:":
		added := ""
		if len(h.Metadata.Annotations) == 0 {
			added = fmt.Sprintf("  {{- with include \"jobset.annotations\" (list $ %t) }}\n  annotations:\n    {{- . | nindent 4 }}\n  {{- end }}\n",
				trusting(h.Kind))
		}
		if len(h.Metadata.Labels) == 0 {
			added += "  labels:\n" + labels
		}
		return added
	case "  labels:":
		if h.Kind == "ServiceMonitor" || h.Kind == "PrometheusRule" {
			return labels + "    {{- with .Values.monitoring.labels }}{{ toYaml . | nindent 4 }}{{ end }}\n"
		}
		return labels
	case "  annotations:":
		return "    {{- with include \"jobset.annotations\" (list $ false) }}{{ . | nindent 4 }}{{- end }}\n"
	}
	return ""
}

// trusting says whether objects of a kind name the authority of our certificate.
func trusting(kind string) bool {
	return kind == "APIService" || kind == "MutatingWebhookConfiguration"
}

// authority returns what follows a line outside of the metadata of an object.
func authority(line, kind string) string {
	switch {
	case kind == "APIService" && line == "spec:":
		return "  {{- with include \"jobset.caBundle\" . }}\n  caBundle: {{ . }}\n  {{- end }}\n"
	case kind == "MutatingWebhookConfiguration" && line == "  clientConfig:":
		return "    {{- with include \"jobset.caBundle\" . }}\n    caBundle: {{ . }}\n    {{- end }}\n"
	}
	return ""
}
