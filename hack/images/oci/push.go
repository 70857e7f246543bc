// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is where images are pushed.
type Registry struct {
	// Prefix is the host of the registry, and the path below which the images are: registry.example.com/team.
	Prefix string
	// PlainHTTP allows HTTP without TLS. A registry on this machine needs no permission.
	PlainHTTP bool
}

// Push pushes the image in an archive under the name of a program, and the documents that refer to it. It returns the name of the image
// with its digest. It uses the credentials that docker login and podman login store.
func (r Registry) Push(ctx context.Context, archive, program string) (string, error) {
	dir, err := os.MkdirTemp("", "jobset-images-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	content, err := Read(archive, dir)
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(r.Prefix+"/"+program+":"+content.Tag, r.options()...)
	if err != nil {
		return "", fmt.Errorf("naming the image: %w", err)
	}
	digest, err := content.Index.Digest()
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", archive, err)
	}
	auth := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, content.Index, auth...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, err)
	}
	for _, document := range content.Documents {
		if err := pushDocument(tag.Context(), document, auth); err != nil {
			return "", err
		}
	}
	return tag.String() + "@" + digest.String(), nil
}

func (r Registry) options() []name.Option {
	options := []name.Option{name.StrictValidation}
	if r.PlainHTTP {
		options = append(options, name.Insecure)
	}
	return options
}

func pushDocument(repository name.Repository, document v1.Image, auth []remote.Option) error {
	digest, err := document.Digest()
	if err != nil {
		return err
	}
	ref := repository.Digest(digest.String())
	if err := remote.Write(ref, document, auth...); err != nil {
		return fmt.Errorf("pushing the bill of materials %s: %w", ref, err)
	}
	return nil
}
