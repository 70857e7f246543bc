// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

const (
	// digestsFile lists the digests of the images. They do not depend on the registry.
	digestsFile = "digests.txt"

	// localPrefix is what nodes put in front of a name without a registry, such as jobset-apiserver:v1.2.3.
	localPrefix = "docker.io/library"
)

// archiveName returns the name of the archive of an image.
func archiveName(p program) string { return p.Name + ".tar" }

// sbomName returns the name of a bill of materials.
func sbomName(p program, platform fmt.Stringer) string {
	return p.Name + "-" + platform.String() + ".cdx.json"
}

// imageOptions are what differs between builds of one release.
type imageOptions struct {
	// Registry and path by which nodes know the images. The default is what nodes put in front of names without a registry.
	Registry string
	// Platforms that images are built for.
	Platforms []golang.Platform
}

// parsePlatforms parses names such as linux/amd64,linux/arm64. The order of the platforms in an image is always the same.
func parsePlatforms(list string) ([]golang.Platform, error) {
	if list == "" {
		return imagePlatforms, nil
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		wanted[name] = true
	}
	var out []golang.Platform
	var known []string
	for _, platform := range imagePlatforms {
		name := platform.OS + "/" + platform.Arch
		known = append(known, name)
		if wanted[name] {
			out = append(out, platform)
			delete(wanted, name)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("--platforms must be of %s, is %q", strings.Join(known, ","), list)
	}
	return out, nil
}

// buildImages writes an archive for each program, the bills of materials beside it, and the digests of all images.
func buildImages(ctx context.Context, r *release, programs []program, options imageOptions, out io.Writer) error {
	if options.Registry == "" {
		options.Registry = localPrefix
	}
	if err := os.MkdirAll(r.Output, 0o755); err != nil {
		return err
	}
	var digests strings.Builder
	for _, p := range programs {
		start := time.Now()
		digest, err := buildImage(ctx, r, p, options)
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(r.Output, archiveName(p)))
		if err != nil {
			return err
		}
		fmt.Fprintf(&digests, "%s  %s:%s\n", digest, p.Name, r.Version)
		fmt.Fprintf(out, "%s: %.1f MiB, %s:%s, %s, in %s\n", archiveName(p), mebibytes(info.Size()), p.Name, r.Version, digest,
			time.Since(start).Round(time.Second))
	}
	return os.WriteFile(filepath.Join(r.Output, digestsFile), []byte(digests.String()), 0o644)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

func buildImage(ctx context.Context, r *release, p program, options imageOptions) (string, error) {
	dir, err := os.MkdirTemp(r.Output, ".build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	roots, err := rootsModule()
	if err != nil {
		return "", err
	}
	var binaries []oci.Binary
	for _, platform := range options.Platforms {
		binary := oci.Binary{Platform: platform, File: filepath.Join(dir, p.Name+"-"+platform.String())}
		if err := r.Source.Build(ctx, p.Package, platform, binary.File); err != nil {
			return "", err
		}
		if binary.SBOM, err = sbom.Read(binary.File, r.subject(p, platform, roots)); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(r.Output, sbomName(p, platform)), binary.SBOM, 0o644); err != nil {
			return "", err
		}
		binaries = append(binaries, binary)
	}
	labels, err := r.labels(p)
	if err != nil {
		return "", err
	}
	index, documents, err := oci.Index(oci.Spec{Program: p.Name, Ports: p.Ports, Labels: labels, Created: r.created()}, binaries)
	if err != nil {
		return "", err
	}
	if err := oci.Write(filepath.Join(r.Output, archiveName(p)), options.Registry+"/"+p.Name, r.Version, index, documents); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// pushImages pushes the archives of all programs, and prints the names to use in manifests.
func pushImages(ctx context.Context, output string, programs []program, registry oci.Registry, out io.Writer) error {
	for _, p := range programs {
		archive := filepath.Join(output, archiveName(p))
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("%w: run make images first", err)
		}
		pushed, err := registry.Push(ctx, archive, p.Name)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, pushed)
	}
	return nil
}
