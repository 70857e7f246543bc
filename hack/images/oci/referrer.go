// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

// emptyConfig is the configuration of a manifest that needs none. Its type is the type of the document, because registries that do not know
// the field artifactType list referrers by the type of their configuration.
const emptyConfig = "{}"

// attach returns a manifest with the bill of materials that refers to an image, so that registries list it as a referrer of the image.
func attach(subject v1.Image, document []byte, created time.Time) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	layer := static.NewLayer(document, sbom.MediaType)
	content, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	config := static.NewLayer([]byte(emptyConfig), sbom.MediaType)
	empty, err := partial.Descriptor(config)
	if err != nil {
		return nil, err
	}
	manifest := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  sbom.MediaType,
		Config:        *empty,
		Layers:        []v1.Descriptor{*content},
		Subject:       &v1.Descriptor{MediaType: about.MediaType, Digest: about.Digest, Size: about.Size},
		Annotations:   map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return partial.CompressedToImage(referrer{manifest: raw, layer: layer})
}

// referrer is a manifest with one layer, as it is.
type referrer struct {
	manifest []byte
	layer    v1.Layer
}

func (r referrer) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (r referrer) RawManifest() ([]byte, error) { return r.manifest, nil }

func (r referrer) RawConfigFile() ([]byte, error) { return []byte(emptyConfig), nil }

func (r referrer) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	own, err := r.layer.Digest()
	if err != nil {
		return nil, err
	}
	if own != digest {
		return nil, fmt.Errorf("layer %s must be %s, the only one", digest, own)
	}
	return r.layer, nil
}
