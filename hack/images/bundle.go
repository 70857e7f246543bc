// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/chart"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/licenses"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/manifests"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/notes"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/provenance"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

const (
	// placeholder stands for the registry in the manifests of a release. No host can have the name.
	placeholder = "registry.invalid"
	// defaultOverlay is the overlay that is installed by install.yaml.
	defaultOverlay = "embedded"

	imagesDir      = "images"
	pluginDir      = "plugin"
	manifestsDir   = "manifests"
	chartDir       = "chart"
	installFile    = "install.yaml"
	licensesFile   = "licenses.txt"
	notesFile      = "notes.md"
	provenanceFile = "provenance.json"
)

// bundle is a release with everything that users download.
type bundle struct {
	release

	// Images are the programs that get an image.
	Images []program
	// Plugin is the program that gets archives.
	Plugin program
	// ImagePlatforms and PluginPlatforms are what they are built for.
	ImagePlatforms, PluginPlatforms []golang.Platform
	// PluginURL is the address below which the archives of the plugin are published; empty for the release of the version.
	PluginURL string
	// Key signs the checksums; nil for none.
	Key *signature.Key
}

// build writes the release into the output directory, in place of what is there. It leaves the directory alone when it fails.
func (b *bundle) build(ctx context.Context, out io.Writer) error {
	if strings.HasSuffix(b.Revision, dirty) {
		return errors.New("a release is built from a commit, and the tree has changes that are not in one: commit or stash them")
	}
	target := b.Output
	b.Output = target + ".unfinished"
	if err := os.RemoveAll(b.Output); err != nil {
		return err
	}
	defer os.RemoveAll(b.Output)
	if err := os.MkdirAll(b.Output, 0o755); err != nil {
		return err
	}
	// What is quick comes first, so that a mistake shows before programs are compiled for minutes.
	for _, step := range []func(context.Context, io.Writer) error{
		b.writeNotes, b.writeLicenses, b.writeImages, b.writePlugin, b.writeManifests, b.writeChart, b.writeProvenance, b.writeChecksums,
	} {
		if err := step(ctx, out); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := os.Rename(b.Output, target); err != nil {
		return err
	}
	fmt.Fprintf(out, "release %s of commit %s is in %s\n", b.Version, b.Revision, target)
	return nil
}

// below returns the release with another output directory.
func (b *bundle) below(dir string) *release {
	r := b.release
	r.Output = filepath.Join(b.Output, dir)
	return &r
}

func (b *bundle) write(name string, content []byte) error {
	file := filepath.Join(b.Output, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

func (b *bundle) writeNotes(_ context.Context, out io.Writer) error {
	changelog, err := os.ReadFile(filepath.Join(b.Source.Dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, heading, err := notes.Extract(string(changelog), b.Version, homepage+"/blob/"+b.Version)
	if err != nil {
		return err
	}
	if heading != b.Version {
		fmt.Fprintf(out, "CHANGELOG.md has no heading \"## %s\": the notes of the release are those under \"## %s\"\n", b.Version, heading)
	}
	return b.write(notesFile, []byte(text))
}

func (b *bundle) writeLicenses(ctx context.Context, _ io.Writer) error {
	modules, err := collectLicenses(ctx, b.Source, b.Images, b.Plugin)
	if err != nil {
		return err
	}
	return b.write(licensesFile, []byte(licenses.Document(modules)))
}

func (b *bundle) writeImages(ctx context.Context, out io.Writer) error {
	return buildImages(ctx, b.below(imagesDir), b.Images, imageOptions{Platforms: b.ImagePlatforms}, out)
}

func (b *bundle) writePlugin(ctx context.Context, out io.Writer) error {
	return buildPlugin(ctx, b.below(pluginDir), b.Plugin, pluginOptions{URL: b.PluginURL, Platforms: b.PluginPlatforms}, out)
}

func (b *bundle) writeManifests(context.Context, io.Writer) error {
	digests, err := readDigests(filepath.Join(b.Output, imagesDir, digestsFile))
	if err != nil {
		return err
	}
	overlays, err := manifests.Overlays(b.Source.Dir)
	if err != nil {
		return err
	}
	for _, overlay := range overlays {
		text, err := renderOverlay(b.Source.Dir, overlay, placeholder, digests)
		if err != nil {
			return err
		}
		if err := b.write(filepath.Join(manifestsDir, overlay+".yaml"), text); err != nil {
			return err
		}
		if overlay != defaultOverlay {
			continue
		}
		if err := b.write(installFile, text); err != nil {
			return err
		}
	}
	return nil
}

func (b *bundle) writeChart(context.Context, io.Writer) error {
	digests, err := readDigests(filepath.Join(b.Output, imagesDir, digestsFile))
	if err != nil {
		return err
	}
	c, err := chart.Load(filepath.Join(b.Source.Dir, chartSource))
	if err != nil {
		return err
	}
	if err := c.Release(b.Version, digests.Images); err != nil {
		return err
	}
	file, err := c.Write(filepath.Join(b.Output, chartDir))
	if err != nil {
		return err
	}
	return writeChartArtifact(c, strings.TrimSuffix(file, ".tgz")+".oci.tar")
}

func (b *bundle) writeProvenance(context.Context, io.Writer) error {
	files, err := checksums.Read(b.Output)
	if err != nil {
		return err
	}
	digests, err := readDigests(filepath.Join(b.Output, imagesDir, digestsFile))
	if err != nil {
		return err
	}
	for name, digest := range digests.Images {
		files[name] = strings.TrimPrefix(digest, "sha256:")
	}
	roots, err := rootsModule()
	if err != nil {
		return err
	}
	sums, err := checksums.Sum(filepath.Join(b.Source.Dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dependencies := map[string]string{}
	if sums != "" {
		dependencies["go.sum"] = sums
	}
	statement, err := provenance.Statement(provenance.Build{
		Repository: homepage,
		Revision:   b.Revision,
		Parameters: map[string]any{
			"command": "make release", "version": b.Version, "platforms": names(b.ImagePlatforms), "ldflags": b.Source.LDFlags,
		},
		Internal:     map[string]any{"go": golang.Version(), "flags": golang.Flags, "authorities": roots.Path + "@" + roots.Version},
		Dependencies: dependencies,
		Files:        files,
	})
	if err != nil {
		return err
	}
	return b.write(provenanceFile, statement)
}

func names(platforms []golang.Platform) string {
	var all []string
	for _, p := range platforms {
		all = append(all, p.OS+"/"+p.Arch)
	}
	return strings.Join(all, ",")
}

func (b *bundle) writeChecksums(_ context.Context, out io.Writer) error {
	return sealDirectory(b.Output, b.Version, b.Key, out)
}

// sealDirectory writes the checksums of all files in a directory, and their signature if there is a key.
func sealDirectory(dir, version string, key *signature.Key, out io.Writer) error {
	if err := checksums.Write(dir); err != nil {
		return err
	}
	if key == nil {
		fmt.Fprintln(out, "the checksums are not signed: set SIGNING_KEY to a private key of minisign to sign them")
		return nil
	}
	return key.Sign(filepath.Join(dir, checksums.File), "jobset-apiserver "+version+", "+checksums.File)
}

// verifyDirectory checks the signature of the checksums in a directory, and then all files. It returns the signed comment.
func verifyDirectory(dir, publicKey string) (string, int, error) {
	comment, err := signature.Verify(filepath.Join(dir, checksums.File), publicKey)
	if err != nil {
		return "", 0, err
	}
	n, err := checksums.Verify(dir, checksums.File+signature.Suffix)
	return comment, n, err
}
