// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom writes software bills of materials in CycloneDX's JSON. The list of modules is the one that the linker has put into the
// program, so it has what the program contains and not what go.mod names.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

// MediaType is the type of the documents.
const MediaType = "application/vnd.cyclonedx+json"

// sumProperty has the checksum of a module as in go.sum. It is not a hash of one file, so it is none of the component's hashes.
const sumProperty = "jobset-apiserver:go:sum"

// Subject is what a bill of materials is about.
type Subject struct {
	// Name and Version of the program.
	Name    string
	Version string
	// Description of the program, one sentence.
	Description string
	// License is an identifier of SPDX.
	License string
	// Created is the time of the document. It must not be the time of the build, which would make each document different.
	Created time.Time
	// Platform that the program was built for.
	Platform golang.Platform
	// Others are modules whose content is shipped beside the program.
	Others []Module
}

// Module is a Go module at one version.
type Module struct {
	Path    string
	Version string
}

// Read returns the bill of materials of a Go program.
func Read(file string, subject Subject) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the modules in %s: %w", file, err)
	}
	hash, err := checksums.Sum(file)
	if err != nil {
		return nil, err
	}
	return encode(document(info, hash, subject))
}

func encode(bom *cyclonedx.BOM) ([]byte, error) {
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encoding the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

func document(info *debug.BuildInfo, hash string, subject Subject) *cyclonedx.BOM {
	program := application(info, hash, subject)
	components := []cyclonedx.Component{standardLibrary(info.GoVersion)}
	for _, dep := range info.Deps {
		components = append(components, library(dep))
	}
	for _, other := range subject.Others {
		components = append(components, component(cyclonedx.ComponentTypeData, other))
	}
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serialNumber(hash, subject)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: subject.Created.UTC().Format(time.RFC3339),
		Component: &program,
	}
	bom.Components = &components
	// The program says which modules it contains, not which of them needs which other.
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom
}

func application(info *debug.BuildInfo, hash string, subject Subject) cyclonedx.Component {
	c := component(cyclonedx.ComponentTypeApplication, Module{Path: info.Main.Path, Version: subject.Version})
	// The package of the program, below its module.
	if below := strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/"); below != "" {
		c.PackageURL += "#" + below
		c.BOMRef = c.PackageURL
	}
	c.Name, c.Description = subject.Name, subject.Description
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hash}}
	c.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: subject.License}}}
	c.Properties = &[]cyclonedx.Property{
		{Name: "jobset-apiserver:go:os", Value: subject.Platform.OS},
		{Name: "jobset-apiserver:go:arch", Value: subject.Platform.Arch},
	}
	return c
}

func standardLibrary(version string) cyclonedx.Component {
	// Experiments follow the version after a space or a dash.
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "go"), " ")
	return component(cyclonedx.ComponentTypeLibrary, Module{Path: "std", Version: number})
}

// library describes a module that the program contains. A replaced module is described by what replaces it.
func library(dep *debug.Module) cyclonedx.Component {
	used := dep
	for used.Replace != nil {
		used = used.Replace
	}
	path := used.Path
	if isDirectory(path) {
		path = dep.Path // a replacement by a directory is no module that others could find
	}
	c := component(cyclonedx.ComponentTypeLibrary, Module{Path: path, Version: used.Version})
	if used.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: sumProperty, Value: used.Sum}}
	}
	return c
}

func isDirectory(path string) bool {
	return strings.HasPrefix(path, ".") || strings.HasPrefix(path, "/")
}

func component(kind cyclonedx.ComponentType, m Module) cyclonedx.Component {
	url := packageURL(m)
	return cyclonedx.Component{Type: kind, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url}
}

// packageURL names a module as scanners look it up: pkg:golang/k8s.io/api@v0.37.2.
func packageURL(m Module) string {
	url := "pkg:golang/" + m.Path
	if m.Version != "" && m.Version != "(devel)" {
		url += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	return url
}

// serialNumber is a UUID of version 8 that depends on the content only: a document about the same program has the same number.
func serialNumber(hash string, subject Subject) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{hash, subject.Name, subject.Version, subject.Platform.String()}, "\n")))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Digest returns the SHA-256 of content as OCI writes it: sha256:….
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
