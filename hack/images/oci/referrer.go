// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

// attach returns a manifest with the bill of materials that refers to an image, so that registries list it as a referrer of the image. The
// configuration needs no content. Its type is the type of the document, because registries that do not know the field artifactType list
// referrers by the type of their configuration.
func attach(subject v1.Image, document []byte, created time.Time) (v1.Image, error) {
	about, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	return Artifact{
		Type:    sbom.MediaType,
		Config:  Blob{MediaType: sbom.MediaType},
		Files:   []Blob{{MediaType: sbom.MediaType, Content: document}},
		Created: created,
		Subject: &v1.Descriptor{MediaType: about.MediaType, Digest: about.Digest, Size: about.Size},
	}.image()
}
