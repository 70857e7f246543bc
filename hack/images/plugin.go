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
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/krew"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

const (
	// manifestFile is named after the plugin, as in the index of Krew.
	manifestFile = pluginName + ".yaml"
	// checksumsFile is for sha256sum --check.
	checksumsFile = "checksums.txt"
	licenseFile   = "LICENSE"
)

// pluginOptions are what differs between archives of one release.
type pluginOptions struct {
	// URL is the address below which the archives are published. The default is the release of the version.
	URL string
	// Platforms that archives are built for. All by default.
	Platforms []golang.Platform
}

// buildPlugin writes an archive and a bill of materials for each platform, the checksums of the archives, and the manifest of Krew, which
// downloads the archives from below an address.
func buildPlugin(ctx context.Context, r *release, p program, options pluginOptions, out io.Writer) error {
	if options.URL == "" {
		options.URL = homepage + "/releases/download/" + r.Version
	}
	if options.Platforms == nil {
		options.Platforms = krew.Platforms
	}
	if err := os.MkdirAll(r.Output, 0o755); err != nil {
		return err
	}
	manifest := krew.Describe(pluginName, krew.Spec{
		Version:          r.Version,
		Homepage:         homepage,
		ShortDescription: shortDescription,
		Description:      pluginText,
	})
	notices, err := pluginLicenses(ctx, r.Source, p)
	if err != nil {
		return err
	}
	var checksums strings.Builder
	for _, platform := range options.Platforms {
		start := time.Now()
		archive := filepath.Join(r.Output, krew.ArchiveName(p.Name, platform))
		bin := platform.Executable(p.Name)
		files, err := packPlugin(ctx, r, p, platform, notices, archive)
		if err != nil {
			return err
		}
		if err := manifest.Add(archive, options.URL, platform, files, bin); err != nil {
			return err
		}
		info, err := os.Stat(archive)
		if err != nil {
			return err
		}
		sum := manifest.Spec.Platforms[len(manifest.Spec.Platforms)-1].SHA256
		fmt.Fprintf(&checksums, "%s  %s\n", sum, filepath.Base(archive))
		fmt.Fprintf(out, "%s: %.1f MiB, sha256:%s, in %s\n", filepath.Base(archive), mebibytes(info.Size()), sum,
			time.Since(start).Round(time.Second))
	}
	if err := os.WriteFile(filepath.Join(r.Output, checksumsFile), []byte(checksums.String()), 0o644); err != nil {
		return err
	}
	if err := krew.Validate(&manifest, r.Output, options.Platforms); err != nil {
		return fmt.Errorf("checking the manifest of Krew: %w", err)
	}
	return manifest.Write(filepath.Join(r.Output, manifestFile))
}

// packPlugin builds the plugin for a platform and packs it with its license and those of its modules. It returns the files in the archive.
func packPlugin(ctx context.Context, r *release, p program, platform golang.Platform, notices []byte, archive string) ([]krew.File, error) {
	dir, err := os.MkdirTemp(r.Output, ".build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := platform.Executable(p.Name)
	binary := filepath.Join(dir, bin)
	if err := r.Source.Build(ctx, p.Package, platform, binary); err != nil {
		return nil, err
	}
	document, err := sbom.Read(binary, r.subject(p, platform))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.Output, sbomName(p, platform)), document, 0o644); err != nil {
		return nil, err
	}
	noticesPath := filepath.Join(dir, licensesFile)
	if err := os.WriteFile(noticesPath, notices, 0o600); err != nil {
		return nil, err
	}
	files := []krew.File{
		{Name: bin, Mode: 0o755, Path: binary},
		{Name: licenseFile, Mode: 0o644, Path: filepath.Join(r.Source.Dir, licenseFile)},
		{Name: licensesFile, Mode: 0o644, Path: noticesPath},
	}
	return files, krew.Pack(archive, platform, files)
}
