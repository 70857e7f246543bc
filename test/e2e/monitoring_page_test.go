// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var (
	// ownMetrics are the names of the metrics that docs/operations/metrics.md lists.
	ownMetrics = regexp.MustCompile(`^(jobset|leaderworkerset|sequentialjob|podgroup|controller_runtime)_`)
	// metricRow is a row of the page: name, type, labels.
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (\\w+) \\|([^|]*)\\|")
	inTicks   = regexp.MustCompile("`([a-z_]+)`")
	typeLine  = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	series    = regexp.MustCompile(`(?m)^([a-z0-9_]+)\{([^}]*)\} `)
	labelName = regexp.MustCompile(`([a-z_]+)="`)
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// comparePage compares the metrics of both programs with docs/operations/metrics.md: each of our metrics is on it with
// its type and its labels, and it has no others.
func comparePage(k *kubectl, tokenFile string) {
	k.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		k.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(k.cluster.Root, "docs/operations/metrics.md"))
	if err != nil {
		k.Fatal(err)
	}
	want := map[string]string{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, label := range inTicks.FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		want[row[1]] = fmt.Sprint(row[2], labels)
	}
	k.eventually(func() string {
		got := map[string]string{}
		for _, port := range []string{"apiserver", "controller-metrics"} {
			config := &rest.Config{Host: "https://127.0.0.1:" + k.port(port), BearerToken: string(token), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			code, body := framework.Get(k, config, "/metrics")
			if code != http.StatusOK {
				return fmt.Sprintf("%s: status %d: %.200s", port, code, body)
			}
			maps.Copy(got, exposed(body))
		}
		var problems []string
		for name, description := range got {
			if want[name] != description {
				problems = append(problems, fmt.Sprintf("%s: is %s, the page has %q", name, description, want[name]))
			}
		}
		for name := range want {
			if ownMetrics.MatchString(name) && got[name] == "" {
				problems = append(problems, name+": is on the page and not exposed")
			}
		}
		slices.Sort(problems)
		return strings.Join(problems, "\n")
	})
	k.Logf("%d metrics on the page", len(want))
}

// exposed returns type and labels of our metrics by their name.
func exposed(body string) map[string]string {
	types, labels := map[string]string{}, map[string]map[string]bool{}
	for _, line := range typeLine.FindAllStringSubmatch(body, -1) {
		if ownMetrics.MatchString(line[1]) {
			types[line[1]], labels[line[1]] = line[2], map[string]bool{}
		}
	}
	for _, line := range series.FindAllStringSubmatch(body, -1) {
		name := line[1]
		if types[name] == "" {
			name = suffix.ReplaceAllString(name, "")
		}
		for _, label := range labelName.FindAllStringSubmatch(line[2], -1) {
			if labels[name] != nil && label[1] != "le" {
				labels[name][label[1]] = true
			}
		}
	}
	for name, kind := range types {
		types[name] = fmt.Sprint(kind, slices.Sorted(maps.Keys(labels[name])))
	}
	return types
}
