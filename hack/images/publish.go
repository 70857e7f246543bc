// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/chart"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

const (
	// Repositories below the registry, beside those of the images.
	chartsRepository   = "charts/jobset-apiserver"
	pluginRepository   = "plugins/kubectl-jobset"
	releasesRepository = "releases/jobset-apiserver"

	releaseType = "application/vnd.jobset-apiserver.release.v1"
	pluginType  = "application/vnd.jobset-apiserver.kubectl-plugin.v1"
	fileType    = "application/octet-stream"
)

// publication pushes a release to a registry.
type publication struct {
	// Release is the directory with the release.
	Release string
	// Output is the directory for what differs by registry: manifests and chart, and files that belong to them.
	Output   string
	Registry oci.Registry
	Images   []program
	// Key signs the checksums of the output; nil for none.
	Key *signature.Key
}

// publish checks the release, writes the output directory, and pushes both.
func (p *publication) publish(ctx context.Context, out io.Writer) error {
	p.Registry.Prefix = strings.TrimSuffix(p.Registry.Prefix, "/")
	version, err := p.check()
	if err != nil {
		return err
	}
	c, err := p.write(version, out)
	if err != nil {
		return err
	}
	if err := pushImages(ctx, filepath.Join(p.Release, imagesDir), p.Images, p.Registry, out); err != nil {
		return err
	}
	return p.pushArtifacts(ctx, version, c, out)
}

// check verifies the release, and returns its version.
func (p *publication) check() (string, error) {
	if _, err := os.Stat(filepath.Join(p.Release, checksums.File)); err != nil {
		return "", fmt.Errorf("%w: run make release first", err)
	}
	if err := p.checkSignature(); err != nil {
		return "", err
	}
	if _, err := checksums.Verify(p.Release, checksums.File+signature.Suffix); err != nil {
		return "", fmt.Errorf("the release in %s was changed: %w", p.Release, err)
	}
	d, err := readDigests(filepath.Join(p.Release, imagesDir, digestsFile))
	return d.Version, err
}

// checkSignature verifies that the key has signed the checksums. Otherwise it would also sign a release whose checksums were
// written again.
func (p *publication) checkSignature() error {
	sums := filepath.Join(p.Release, checksums.File)
	_, err := os.Stat(sums + signature.Suffix)
	signed := err == nil
	switch {
	case !signed && p.Key == nil:
		return nil
	case !signed:
		return fmt.Errorf("the release must be signed by SIGNING_KEY: %s has no signature; run make release with SIGNING_KEY, "+
			"or make publish without it", sums)
	case p.Key == nil:
		return errors.New("the release is signed: set SIGNING_KEY, so that the manifests with the registry are signed, too")
	}
	if err := p.Key.Verify(sums); err != nil {
		return fmt.Errorf("the release must be signed by SIGNING_KEY: %w", err)
	}
	return nil
}

// write copies the release into the output directory, except the images, with the registry in the manifests and in the chart.
func (p *publication) write(version string, out io.Writer) (*chart.Chart, error) {
	unfinished := p.Output + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return nil, err
	}
	defer os.RemoveAll(unfinished)
	var c *chart.Chart
	err := filepath.WalkDir(p.Release, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.Release, file)
		if err != nil {
			return err
		}
		content, err := p.content(filepath.ToSlash(name), &c)
		if err != nil || content == nil {
			return err
		}
		to := filepath.Join(unfinished, name)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644))
	})
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("%s must have a chart", p.Release)
	}
	if err := sealDirectory(unfinished, version, p.Key, out); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.Output); err != nil {
		return nil, err
	}
	return c, os.Rename(unfinished, p.Output)
}

// content returns a file of the release as it is published, or nil if it is left out. It sets the chart when it comes to it.
func (p *publication) content(name string, c **chart.Chart) ([]byte, error) {
	if strings.HasSuffix(name, ".tar") || strings.HasPrefix(name, checksums.File) {
		return nil, nil
	}
	content, err := os.ReadFile(filepath.Join(p.Release, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	switch {
	case name == installFile || strings.HasPrefix(name, manifestsDir+"/"):
		if !bytes.Contains(content, []byte(placeholder+"/")) {
			return nil, fmt.Errorf("%s must have images of %s", name, placeholder)
		}
		return bytes.ReplaceAll(content, []byte(placeholder), []byte(p.Registry.Prefix)), nil
	case strings.HasPrefix(name, chartDir+"/"):
		if *c, err = chart.Unpack(content); err != nil {
			return nil, err
		}
		if err := (*c).Publish(p.Registry.Prefix); err != nil {
			return nil, err
		}
		return (*c).Pack()
	}
	return content, nil
}

// pushArtifacts pushes what is no image, and prints how to install.
func (p *publication) pushArtifacts(ctx context.Context, version string, c *chart.Chart, out io.Writer) error {
	artifact, tag, err := chartArtifact(c)
	if err != nil {
		return err
	}
	files, err := p.files("")
	if err != nil {
		return err
	}
	archives, err := p.files(pluginDir)
	if err != nil {
		return err
	}
	for _, push := range []struct {
		repository, tag string
		artifact        oci.Artifact
	}{
		{chartsRepository, tag, artifact},
		{pluginRepository, version, oci.Artifact{Type: pluginType, Config: oci.Blob{MediaType: oci.EmptyConfigType}, Files: archives}},
		{releasesRepository, version, oci.Artifact{Type: releaseType, Config: oci.Blob{MediaType: oci.EmptyConfigType}, Files: files}},
	} {
		pushed, err := p.Registry.PushArtifact(ctx, push.repository, push.tag, push.artifact)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, pushed)
	}
	options := ""
	if p.Registry.PlainHTTP {
		options = " --plain-http"
	}
	fmt.Fprintf(out, "\nInstall with either of these:\n\n    helm install jobset oci://%s/%s --version %s%s\n",
		p.Registry.Prefix, chartsRepository, tag, options)
	fmt.Fprintf(out, "    kubectl apply --server-side -f %s\n", filepath.Join(p.Output, installFile))
	return nil
}

// files returns the files below a directory of the output, with names relative to it.
func (p *publication) files(below string) ([]oci.Blob, error) {
	dir := filepath.Join(p.Output, below)
	var blobs []oci.Blob
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		blobs = append(blobs, oci.Blob{MediaType: fileType, Content: content, Title: filepath.ToSlash(name)})
		return err
	})
	return blobs, err
}
