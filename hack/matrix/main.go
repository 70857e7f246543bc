// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// matrix writes the tables of docs/versions.md about versions of Kubernetes and of etcd from what hack/matrix.sh has left.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	begin = "<!-- written by make matrix -->\n"
	end   = "<!-- end of what make matrix writes -->\n"

	featuresEnding = ".features"
	resultsEnding  = ".json"
)

// suites are the columns for tests, by the endings of the files that have their output.
var suites = []struct{ name, title string }{{"integration", "Integration"}, {"parity", "Parity"}, {"e2e", "End to end, short"}}

// rows are the rows for features, by the keys that the test of features writes.
var rows = []struct{ key, title string }{
	{"mutatingadmissionpolicies", "API MutatingAdmissionPolicy, `admissionregistration.k8s.io/v1`"},
	{"podgroups", "API PodGroup, `scheduling.k8s.io`"},
	{"GenericWorkload", "gate `GenericWorkload`"},
	{"GangScheduling", "gate `GangScheduling`"},
	{"ContainerRestartRules", "gate `ContainerRestartRules`"},
	{"RestartAllContainersOnContainerExits", "gate `RestartAllContainersOnContainerExits`"},
	{"MutablePodResourcesForSuspendedJobs", "gate `MutablePodResourcesForSuspendedJobs`"},
	{"MaxUnavailableStatefulSet", "gate `MaxUnavailableStatefulSet`"},
	{"PodTopologyLabelsAdmission", "gate `PodTopologyLabelsAdmission`"},
}

// feature depends on the version of the cluster.
type feature struct {
	title string
	// needs are the keys of all that it needs.
	needs []string
	// since is the first version that has the API which it needs, if that is served only with flags.
	since string
}

var ourFeatures = []feature{
	{"MutatingAdmissionPolicies for our kinds", []string{"mutatingadmissionpolicies"}, ""},
	{"in-place restart, agent as the main container", []string{"ContainerRestartRules"}, ""},
	{"in-place restart, agent as a sidecar", []string{"ContainerRestartRules", "RestartAllContainersOnContainerExits"}, ""},
	{"groups of pods and gangs of `scheduling.k8s.io`", []string{"GenericWorkload", "podgroups"}, "1.36"},
	{"resources that change while a set is suspended", []string{"MutablePodResourcesForSuspendedJobs"}, ""},
	{"domains in `kubectl jobset top`, without a permission for nodes", []string{"PodTopologyLabelsAdmission"}, ""},
}

func main() {
	results := flag.String("results", "", "directory with the results")
	page := flag.String("page", "", "page that has the tables")
	tree := flag.String("tree", "", "what was tested, such as a commit and its date")
	flag.Parse()
	if err := run(*results, *page, *tree); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(results, page, tree string) error {
	tables, err := tables(results)
	if err != nil {
		return err
	}
	tables = "Tested: " + tree + ".\n\n" + tables
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := replace(string(text), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(written), 0o644)
}

// replace puts the tables between the comments.
func replace(page, tables string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", errors.New("the page must have the comments between which the tables stand")
	}
	return before + begin + "\n" + tables + "\n" + end + after, nil
}

// tables writes what the directory has.
func tables(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+featuresEnding))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no results: use hack/matrix.sh", dir)
	}
	slices.Sort(files)
	var b strings.Builder
	b.WriteString("| Kubernetes |")
	for _, suite := range suites {
		b.WriteString(" " + suite.title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(suites)) + "\n")
	all := make([]map[string]string, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(data, &all[i]); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		b.WriteString("| " + all[i]["version"] + " |")
		for _, suite := range suites {
			result, err := count(strings.TrimSuffix(file, featuresEnding) + "-" + suite.name + resultsEnding)
			if err != nil {
				return "", err
			}
			b.WriteString(" " + result + " |")
		}
		b.WriteString("\n")
	}
	if err := etcds(&b, dir); err != nil {
		return "", err
	}
	features(&b, all)
	return b.String(), nil
}

// etcds writes the table of versions of etcd, if these tests ran.
func etcds(b *strings.Builder, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "etcd-*"+resultsEnding))
	if err != nil || len(files) == 0 {
		return err
	}
	b.WriteString("\n| External etcd | Integration |\n|---|---|\n")
	for _, file := range files {
		result, err := count(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "etcd-"), resultsEnding)
		fmt.Fprintf(b, "| %s | %s |\n", name, result)
	}
	return nil
}

// features writes the table of features.
func features(b *strings.Builder, versions []map[string]string) {
	b.WriteString("\n| Without flags |")
	for _, cluster := range versions {
		b.WriteString(" " + cluster["version"] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(versions)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row.title + " |")
		for _, cluster := range versions {
			b.WriteString(" " + cluster[row.key] + " |")
		}
		b.WriteString("\n")
	}
	for _, feature := range ourFeatures {
		b.WriteString("| " + feature.title + " |")
		for _, cluster := range versions {
			b.WriteString(" " + feature.availability(cluster) + " |")
		}
		b.WriteString("\n")
	}
}

// availability says whether a cluster has all that the feature needs.
func (f *feature) availability(cluster map[string]string) string {
	is, err := version.ParseGeneric(cluster["version"])
	served := err == nil && f.since != "" && is.AtLeast(version.MustParseGeneric(f.since))
	result := "**yes**"
	for _, need := range f.needs {
		switch has := cluster[need]; {
		case strings.HasSuffix(has, ", off"), has == "absent" && served:
			result = "with flags of the cluster"
		case has == "absent" || has == "":
			return "no"
		}
	}
	return result
}

// event is a line that "go test -json" writes.
type event struct {
	Action, Package, Test string
}

// results are the tests of a file, without their subtests.
type results struct {
	counts map[string]int
	// failed are tests that failed, and packages that did not build or ended before their tests.
	failed, packages map[string]bool
}

func (r *results) add(e event) {
	switch {
	case strings.Contains(e.Test, "/"):
	case e.Test == "" && e.Action == "fail" && !r.packages[e.Package]: // the tests of a package end before it
		r.failed[path.Base(e.Package)] = true
	case e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
		r.counts[e.Action]++
		if e.Action == "fail" {
			r.failed[e.Test], r.packages[e.Package] = true, true
		}
	}
}

// String says how many passed and were skipped, and names what failed.
func (r *results) String() string {
	text := fmt.Sprintf("%d passed", r.counts["pass"])
	if n := r.counts["skip"]; n > 0 {
		text += fmt.Sprintf(", %d skipped", n)
	}
	if len(r.failed) > 0 {
		text += ", failed: " + strings.Join(slices.Sorted(maps.Keys(r.failed)), ", ")
	}
	return text
}

// count describes the results in a file.
func count(file string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "not run", nil
	}
	if err != nil {
		return "", err
	}
	r := &results{counts: map[string]int{}, failed: map[string]bool{}, packages: map[string]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil { // otherwise it is a line of a build
			r.add(e)
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return r.String(), nil
}
