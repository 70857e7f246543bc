// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// pin is the last cell of a row of the matrix: a go.mod and a module in it, or the word go for the version of the language.
var pin = regexp.MustCompile("^`([\\w/.]*go\\.mod)`: `([\\w./-]+)`$")

// TestMatrixIsPinned compares the versions of docs/versions.md with the modules that pin the programs of tests.
func TestMatrixIsPinned(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/versions.md"), "<!-- matrix -->\n")
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 4 || rows == 0 && !pin.MatchString(strings.TrimSpace(cells[3])) {
			continue
		}
		rows++
		where := pin.FindStringSubmatch(strings.TrimSpace(cells[3]))
		if where == nil {
			t.Errorf("no go.mod and module: %s", line)
			continue
		}
		version := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(where[2]) + ` v?(\S+)`).FindStringSubmatch(read(t, where[1]))
		want := strings.TrimSpace(cells[2])
		if want == "" {
			want, _, _ = strings.Cut(strings.TrimSpace(cells[1]), " ")
		}
		if version == nil || version[1] != want {
			t.Errorf("%s: %s says %v", strings.TrimSpace(line), where[1], version)
		}
	}
	if rows < 12 {
		t.Errorf("found %d rows: want at least 12, or the expression has stopped matching", rows)
	}
}

// TestSupportedVersionsAgree compares what the pages say is supported with what the programs and the chart accept.
func TestSupportedVersionsAgree(t *testing.T) {
	pages := read(t, "docs/versions.md")
	readme := read(t, "README.md")
	first := func(file, expression string) string {
		found := regexp.MustCompile(expression).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s does not match %s", file, expression)
		}
		return found[1]
	}
	kubernetes := first("pkg/kubectl/doctor/api.go", `oldestKubernetes = "(.+)"`)
	etcd := first("pkg/apiserver/store/etcd/members/check.go", `MinVersion = "(.+)"`)
	tested := first("hack/lib/versions.sh", `default_kubernetes=(.+)`)
	if !strings.Contains(pages, "`hack/controlplane/"+tested+"/go.mod`") {
		t.Errorf("docs/versions.md does not have the version of Kubernetes of hack/lib/versions.sh, %s", tested)
	}
	for _, want := range []string{"| " + kubernetes + " and later |", "| " + etcd + " and later |"} {
		if !strings.Contains(pages, want) {
			t.Errorf("docs/versions.md does not have %q", want)
		}
	}
	for _, want := range []string{
		"| Kubernetes | " + kubernetes + " or newer; [tested](docs/versions.md#results-by-version) with " + controlPlanes(t) + " |", "| etcd, if external | " + etcd + " or newer |",
		"| Go, to build it | " + first("go.mod", `(?m)^go (\d+\.\d+)`) + " |",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not have %q", want)
		}
	}
	if chart := first("charts/jobset-apiserver/Chart.yaml", `kubeVersion: ">=(\d+\.\d+)\.0`); chart != kubernetes {
		t.Errorf("the chart installs from Kubernetes %s on, want %s", chart, kubernetes)
	}
	if built := first("hack/controlplane/"+tested+"/go.mod", `k8s\.io/kubernetes v(\S+)`); !strings.HasPrefix(built, tested+".") {
		t.Errorf("the control plane says that it is %s, want %s", built, tested)
	}
	if skew := first("pkg/kubectl/version/version.go", `supportedSkew\s*=\s*(\d+)`); skew != "1" {
		t.Errorf("docs/versions.md says that one minor version of difference is supported; the plugin accepts %s", skew)
	}
}

// controlPlanes returns the first and the last version of Kubernetes that make matrix tests.
func controlPlanes(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("..", "..", "hack", "controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	return entries[0].Name() + " to " + entries[len(entries)-1].Name()
}

// TestVersionsNamesAllAPIs compares the API versions of docs/versions.md with the APIServices, and the gates in it with those that exist.
func TestVersionsNamesAllAPIs(t *testing.T) {
	page := read(t, "docs/versions.md")
	manifests := read(t, "artifacts/base/apiservice.yaml") + read(t, "artifacts/components/disaggregatedset/apiservice.yaml") +
		read(t, "artifacts/take-over/migration.yaml")
	services := regexp.MustCompile(`(?m)^  group: (\S+)\n  version: (\S+)$`).FindAllStringSubmatch(manifests, -1)
	for _, service := range services {
		if !strings.Contains(page, "| `"+service[1]+"/"+service[2]+"` |") {
			t.Errorf("docs/versions.md does not have %s/%s", service[1], service[2])
		}
	}
	if len(services) != 6 {
		t.Errorf("found %d APIServices, want 6", len(services))
	}
	gates := regexp.MustCompile("(?m)^\\| .*\\(`([A-Z]\\w+)`\\) \\|").FindAllStringSubmatch(page, -1)
	known := features.Specs()
	for _, gate := range gates {
		found := false
		for name := range known {
			found = found || string(name) == gate[1]
		}
		if !found {
			t.Errorf("there is no gate %s", gate[1])
		}
	}
	if len(gates) < 3 {
		t.Errorf("found %d gates in the table of features: want at least 3, or the expression has stopped matching", len(gates))
	}
}

// TestCommitBeforeReleasesExists: the commit whose programs stand in for an earlier release is in the history, unless that is not there.
func TestCommitBeforeReleasesExists(t *testing.T) {
	pinned := regexp.MustCompile(`(?m)^readonly before_releases=([0-9a-f]{40})$`).FindStringSubmatch(read(t, "hack/upgrade.sh"))
	if pinned == nil {
		t.Fatal("hack/upgrade.sh pins no commit")
	}
	if !strings.Contains(read(t, "docs/versions.md"), "("+pinned[1][:12]+")") {
		t.Errorf("docs/versions.md does not have the commit of hack/upgrade.sh, %s", pinned[1][:12])
	}
	shallow, err := git(t, "rev-parse", "--is-shallow-repository")
	if err != nil || shallow != "false" {
		t.Skip("this tree has no history")
	}
	if _, err := git(t, "cat-file", "-e", pinned[1]+"^{commit}"); err != nil {
		t.Errorf("hack/upgrade.sh: %s is not in the history: %v", pinned[1], err)
	}
}

func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join("..", "..")}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
