// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci builds images that contain one static program and certificate authorities, archives of such images, and pushes them.
package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

// User is the one that programs run as: no name, no home and no file of its own.
const User = "65532:65532"

// Binary is a program that was built for one platform, with the bill of materials of it.
type Binary struct {
	Platform golang.Platform
	File     string
	SBOM     []byte
}

// Spec describes an image.
type Spec struct {
	// Program is the name of the file of the program in the root directory.
	Program string
	// Ports are the ports that the program listens on, such as 8443/tcp.
	Ports []string
	// Labels are the labels of the image, and the annotations of its index.
	Labels map[string]string
	// Created is the time of the image. The files in it have no time, so that equal files are equal layers.
	Created time.Time
}

// Index returns an image for each platform, and the bills of materials that refer to them.
func Index(spec Spec, binaries []Binary) (v1.ImageIndex, []v1.Image, error) {
	roots, err := layer([]file{{name: rootsFile, mode: 0o644, content: Roots()}})
	if err != nil {
		return nil, nil, fmt.Errorf("packing the certificate authorities: %w", err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var documents []v1.Image
	for _, binary := range binaries {
		img, err := image(spec, binary, roots)
		if err != nil {
			return nil, nil, fmt.Errorf("building the image of %s for %s: %w", spec.Program, binary.Platform, err)
		}
		platform := &v1.Platform{OS: binary.Platform.OS, Architecture: binary.Platform.Arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		document, err := attach(img, binary.SBOM, spec.Created)
		if err != nil {
			return nil, nil, fmt.Errorf("attaching the bill of materials of %s for %s: %w", spec.Program, binary.Platform, err)
		}
		documents = append(documents, document)
	}
	return mutate.Annotations(index, spec.Labels).(v1.ImageIndex), documents, nil
}

func image(spec Spec, binary Binary, roots v1.Layer) (v1.Image, error) {
	content, err := os.ReadFile(binary.File)
	if err != nil {
		return nil, err
	}
	program, err := layer([]file{{name: spec.Program, mode: 0o755, content: content}})
	if err != nil {
		return nil, err
	}
	ports := map[string]struct{}{}
	for _, port := range spec.Ports {
		ports[port] = struct{}{}
	}
	created := v1.Time{Time: spec.Created.UTC()}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS:           binary.Platform.OS,
		Architecture: binary.Platform.Arch,
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		// With the path, users run the program by its name in a container.
		Config: v1.Config{
			User: User, Env: []string{"PATH=/"}, Entrypoint: []string{"/" + spec.Program}, ExposedPorts: ports, Labels: spec.Labels,
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img,
		mutate.Addendum{Layer: roots, History: v1.History{Created: created, CreatedBy: "make images", Comment: "certificate authorities"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: created, CreatedBy: "make images", Comment: spec.Program}},
	)
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// layer packs files and the directories above them. They belong to root and have no time.
func layer(files []file) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	seen := map[string]bool{}
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// parents returns the directories above a file, from the outermost to the innermost.
func parents(name string) []string {
	var out []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		out = append([]string{dir}, out...)
	}
	return out
}
