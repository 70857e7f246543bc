// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provenance writes how a release was built, as an in-toto statement with the SLSA provenance predicate.
package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	predicate "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// predicateType is version 1 of SLSA's provenance.
const predicateType = "https://slsa.dev/provenance/v1"

// Build is what a statement says. It has no time and nothing about the machine, so that the same commit gives the same statement.
type Build struct {
	// Repository is where the source is, such as https://github.com/example/example.
	Repository string
	// Revision is the commit.
	Revision string
	// Parameters are what the person who built has chosen, such as the version.
	Parameters map[string]any
	// Internal is what the build has chosen, such as the version of Go.
	Internal map[string]any
	// Dependencies are further inputs by their names, with their SHA-256 in hexadecimal.
	Dependencies map[string]string
	// Files are the results by their names, with their SHA-256 in hexadecimal.
	Files map[string]string
}

// Statement returns the statement in JSON.
func Statement(b Build) ([]byte, error) {
	parameters, err := structpb.NewStruct(b.Parameters)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters of the build: %w", err)
	}
	internal, err := structpb.NewStruct(b.Internal)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters of the build: %w", err)
	}
	source := &intoto.ResourceDescriptor{Uri: "git+" + b.Repository + "@" + b.Revision, Digest: map[string]string{"gitCommit": b.Revision}}
	p := &predicate.Provenance{
		BuildDefinition: &predicate.BuildDefinition{
			BuildType:            b.Repository + "/blob/main/docs/release.md#provenance",
			ExternalParameters:   parameters,
			InternalParameters:   internal,
			ResolvedDependencies: append([]*intoto.ResourceDescriptor{source}, descriptors(b.Dependencies)...),
		},
		// Whoever has the commit can build the same bytes, so the program that builds is the builder, and no machine is.
		RunDetails: &predicate.RunDetails{Builder: &predicate.Builder{Id: b.Repository + "/tree/" + b.Revision + "/hack/images"}},
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the provenance is not complete: %w", err)
	}
	content, err := protojson.Marshal(p)
	if err != nil {
		return nil, err
	}
	var value structpb.Struct
	if err := protojson.Unmarshal(content, &value); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, Subject: descriptors(b.Files), PredicateType: predicateType, Predicate: &value,
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("the statement is not complete: %w", err)
	}
	if content, err = protojson.Marshal(statement); err != nil {
		return nil, err
	}
	// The library varies white space at random, so that programs do not depend on it.
	var out bytes.Buffer
	if err := json.Indent(&out, content, "", "  "); err != nil {
		return nil, err
	}
	return append(out.Bytes(), '\n'), nil
}

func descriptors(sums map[string]string) []*intoto.ResourceDescriptor {
	var all []*intoto.ResourceDescriptor
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sums[name]}})
	}
	return all
}
