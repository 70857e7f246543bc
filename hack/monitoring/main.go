// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Program monitoring generates what follows from the rule file and from the dashboards of this package: the
// PrometheusRule of the component, and the JSON of the dashboards. Its argument is the root of the checkout.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring ROOT")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	rulesFile      = "artifacts/monitoring/rules.yaml"
	ruleObjectFile = "artifacts/components/monitoring/prometheusrule.yaml"
	dashboardsDir  = "artifacts/monitoring/dashboards"
)

func generate(root string) error {
	files, err := generated(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the content of the files by their path in the checkout.
func generated(root string) (map[string][]byte, error) {
	rules, err := os.ReadFile(filepath.Join(root, rulesFile))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{ruleObjectFile: ruleObject(string(rules))}
	for _, dashboard := range dashboards() {
		content, err := dashboard.JSON()
		if err != nil {
			return nil, err
		}
		files[filepath.Join(dashboardsDir, dashboard.UID+".json")] = content
	}
	return files, nil
}

const ruleObjectHead = `# Generated from artifacts/monitoring/rules.yaml by make generate.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: jobset
  namespace: jobset-system
  labels:
    app.kubernetes.io/part-of: jobset-apiserver
spec:
`

// ruleObject wraps a rule file in the type of Prometheus's operator.
func ruleObject(rules string) []byte {
	var out strings.Builder
	out.WriteString(ruleObjectHead)
	for line := range strings.Lines(rules) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			out.WriteString(line)
		default:
			out.WriteString("  " + line)
		}
	}
	return []byte(out.String())
}
