// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// EmptyConfigType is the type of the configuration of artifacts without any.
	EmptyConfigType = "application/vnd.oci.empty.v1+json"

	// createdAnnotation has the time of a manifest.
	createdAnnotation = "org.opencontainers.image.created"
	// titleAnnotation has the name under which programs such as oras store a layer.
	titleAnnotation = "org.opencontainers.image.title"
)

// Blob is a file in an artifact.
type Blob struct {
	MediaType string
	Content   []byte
	// Title is the name of the file; empty for none.
	Title string
}

// Artifact is something in a registry that is no image.
type Artifact struct {
	// Type is the type of the artifact; empty if the configuration has the type.
	Type string
	// Config is the configuration. Its content is {} by default.
	Config Blob
	Files  []Blob
	// Annotations of the manifest.
	Annotations map[string]string
	// Created is the time of the manifest, if it has one.
	Created time.Time
	// Subject is what the artifact refers to, or nil.
	Subject *v1.Descriptor
}

// image returns the artifact with the interface of an image. Equal artifacts have equal manifests.
func (a Artifact) image() (v1.Image, error) {
	if a.Config.Content == nil {
		a.Config.Content = []byte("{}")
	}
	config, err := partial.Descriptor(static.NewLayer(a.Config.Content, types.MediaType(a.Config.MediaType)))
	if err != nil {
		return nil, err
	}
	manifest := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  a.Type,
		Config:        *config,
		Subject:       a.Subject,
		Annotations:   maps.Clone(a.Annotations),
	}
	if !a.Created.IsZero() {
		if manifest.Annotations == nil {
			manifest.Annotations = map[string]string{}
		}
		manifest.Annotations[createdAnnotation] = a.Created.UTC().Format(time.RFC3339)
	}
	layers := map[v1.Hash]v1.Layer{}
	for _, f := range a.Files {
		layer := static.NewLayer(f.Content, types.MediaType(f.MediaType))
		content, err := partial.Descriptor(layer)
		if err != nil {
			return nil, err
		}
		if f.Title != "" {
			content.Annotations = map[string]string{titleAnnotation: f.Title}
		}
		manifest.Layers = append(manifest.Layers, *content)
		layers[content.Digest] = layer
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return partial.CompressedToImage(stored{manifest: raw, config: a.Config.Content, layers: layers})
}

// stored is a manifest with its blobs, as they are.
type stored struct {
	manifest, config []byte
	layers           map[v1.Hash]v1.Layer
}

func (s stored) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (s stored) RawManifest() ([]byte, error) { return s.manifest, nil }

func (s stored) RawConfigFile() ([]byte, error) { return s.config, nil }

func (s stored) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	layer, found := s.layers[digest]
	if !found {
		return nil, fmt.Errorf("layer %s is not in the manifest", digest)
	}
	return layer, nil
}

// WriteArtifact writes an archive of OCI with an artifact under a tag.
func WriteArtifact(archive, tag string, a Artifact) error {
	image, err := a.image()
	if err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	return writeLayout(archive, func(content layout.Path) error {
		return content.AppendImage(image, layout.WithAnnotations(map[string]string{tagAnnotation: tag}))
	})
}

// PushArtifact pushes an artifact into a repository below the prefix of the registry, and returns its name with its digest.
func (r Registry) PushArtifact(ctx context.Context, repository, tag string, a Artifact) (string, error) {
	image, err := a.image()
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	ref, err := name.NewTag(r.Prefix+"/"+repository+":"+tag, r.options()...)
	if err != nil {
		return "", fmt.Errorf("naming the artifact: %w", err)
	}
	if err := remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	return ref.String() + "@" + digest.String(), nil
}

// writeLayout writes an archive of OCI that a function fills.
func writeLayout(archive string, fill func(layout.Path) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(archive), ".layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	content, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the layout of %s: %w", archive, err)
	}
	if err := fill(content); err != nil {
		return err
	}
	return pack(dir, archive)
}
