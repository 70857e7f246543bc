// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/chart"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/manifests"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
)

// chartSource is the chart, below the root of the repository.
var chartSource = filepath.Join("charts", "jobset-apiserver")

const (
	chartConfigType  = "application/vnd.cncf.helm.config.v1+json"
	chartContentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// digestLine is a line of the file of digests: a digest, the name of a program, and the version.
var digestLine = regexp.MustCompile(`^(sha256:[0-9a-f]{64})  ([a-z0-9-]+):(\S+)$`)

// digests are the images that were built.
type digests struct {
	Version string
	// Images are the digests by the names of programs.
	Images map[string]string
}

// readDigests reads the file that make images has written.
func readDigests(file string) (digests, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return digests{}, fmt.Errorf("%w: run make images first", err)
	}
	d := digests{Images: map[string]string{}}
	for line := range strings.Lines(string(content)) {
		match := digestLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			return digests{}, fmt.Errorf("%s: %q must be a digest and an image; run make images", file, line)
		}
		d.Images[match[2]], d.Version = match[1], match[3]
	}
	if len(d.Images) == 0 {
		return digests{}, fmt.Errorf("%s: is empty; run make images", file)
	}
	return d, nil
}

// renderOverlay returns the manifests of an overlay with the images of a registry.
func renderOverlay(source, overlay, registry string, d digests) ([]byte, error) {
	var images []manifests.Image
	for name, digest := range d.Images {
		images = append(images, manifests.Image{Name: name, NewName: registry + "/" + name, Digest: digest})
	}
	slices.SortFunc(images, func(a, b manifests.Image) int { return strings.Compare(a.Name, b.Name) })
	text, err := manifests.Render(source, overlay, images)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "# jobset-apiserver %s, overlay %s, with images from %s.\n", d.Version, overlay, registry), text...), nil
}

// chartArtifact returns a chart as registries have it, and its version.
func chartArtifact(c *chart.Chart) (oci.Artifact, string, error) {
	metadata, err := c.Metadata()
	if err != nil {
		return oci.Artifact{}, "", err
	}
	config, err := c.Config()
	if err != nil {
		return oci.Artifact{}, "", err
	}
	archive, err := c.Pack()
	if err != nil {
		return oci.Artifact{}, "", err
	}
	return oci.Artifact{
		Config: oci.Blob{MediaType: chartConfigType, Content: config},
		Files:  []oci.Blob{{MediaType: chartContentType, Content: archive}},
		Annotations: map[string]string{
			"org.opencontainers.image.title":       metadata.Name,
			"org.opencontainers.image.version":     metadata.Version,
			"org.opencontainers.image.description": metadata.Description,
			"org.opencontainers.image.url":         homepage,
		},
	}, metadata.Version, nil
}

func writeChartArtifact(c *chart.Chart, file string) error {
	artifact, version, err := chartArtifact(c)
	if err != nil {
		return err
	}
	return oci.WriteArtifact(file, version, artifact)
}
