// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

var subject = Subject{
	Name:        "tool",
	Version:     "v1.2.3",
	Description: "Does a thing.",
	License:     "Apache-2.0",
	Created:     time.Unix(1700000000, 0),
	Platform:    golang.Platform{OS: "linux", Arch: "amd64"},
	Others:      []Module{{Path: "example.com/roots", Version: "v0.0.1"}},
}

// TestSchema describes a real program, which is this test, and checks the document against the schema of CycloneDX.
func TestSchema(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	document, err := Read(program, subject)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(program, subject)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(document, again) {
		t.Error("two documents about one program differ")
	}
	expectValid(t, document)
}

func expectValid(t *testing.T, document []byte) {
	t.Helper()
	result, err := schema(t).Validate(gojsonschema.NewBytesLoader(document))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range result.Errors() {
		t.Error(problem)
	}
}

// schema compiles the schema in the module that writes the documents, without a look at the network.
func schema(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema")
	load := func(name string) gojsonschema.JSONLoader {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return gojsonschema.NewBytesLoader(content)
	}
	loader := gojsonschema.NewSchemaLoader()
	if err := loader.AddSchema("http://cyclonedx.org/schema/spdx.schema.json", load("spdx.schema.json")); err != nil {
		t.Fatal(err)
	}
	if err := loader.AddSchema("http://cyclonedx.org/schema/jsf-0.82.schema.json", load("jsf-0.82.schemax.json")); err != nil {
		t.Fatal(err)
	}
	compiled, err := loader.Compile(load("bom-1.6.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestComponents(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      "example.com/tool/cmd/tool",
		Main:      debug.Module{Path: "example.com/tool", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/plain", Version: "v1.0.0", Sum: "h1:plain="},
			{Path: "example.com/forked", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.1.0", Sum: "h1:fork="}},
			{Path: "example.com/local", Version: "v1.0.0", Replace: &debug.Module{Path: "./local", Version: "(devel)"}},
			{Path: "example.com/old", Version: "v2.0.0+incompatible", Sum: "h1:old="},
		},
	}
	bom := document(info, strings.Repeat("ab", 32), subject)
	encoded, err := encode(bom)
	if err != nil {
		t.Fatal(err)
	}
	expectValid(t, encoded)
	got := map[string]string{}
	for _, c := range *bom.Components {
		sum := ""
		if c.Properties != nil {
			sum = (*c.Properties)[0].Value
		}
		got[c.PackageURL] = string(c.Type) + " " + sum
	}
	want := map[string]string{
		"pkg:golang/std@1.26.8":                            "library ",
		"pkg:golang/example.com/plain@v1.0.0":              "library h1:plain=",
		"pkg:golang/example.com/fork@v1.1.0":               "library h1:fork=",
		"pkg:golang/example.com/local":                     "library ",
		"pkg:golang/example.com/old@v2.0.0%2Bincompatible": "library h1:old=",
		"pkg:golang/example.com/roots@v0.0.1":              "data ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	program := bom.Metadata.Component
	if program.PackageURL != "pkg:golang/example.com/tool@v1.2.3#cmd/tool" || (*program.Hashes)[0].Value != strings.Repeat("ab", 32) {
		t.Errorf("the program is %s with the hash %s", program.PackageURL, (*program.Hashes)[0].Value)
	}
	if bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the time is %s, want that of the commit, 2023-11-14T22:13:20Z", bom.Metadata.Timestamp)
	}
	if n := len(*(*bom.Dependencies)[0].Dependencies); n != len(want) {
		t.Errorf("the program depends on %d components, want %d", n, len(want))
	}
	other := subject
	other.Platform.Arch = "arm64"
	if document(info, strings.Repeat("ab", 32), other).SerialNumber == bom.SerialNumber {
		t.Error("documents for two platforms have one number")
	}
}

func TestReadMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "-missing"} {
		if _, err := Read(path, subject); err == nil || !strings.Contains(err.Error(), "reading the modules in "+path) {
			t.Errorf("error is %v, want one that names %s", err, path)
		}
	}
}
