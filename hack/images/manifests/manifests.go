// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests renders overlays of kustomize with the digests of images.
package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlaysDir has a directory for each overlay, below the root of the repository.
var overlaysDir = filepath.Join("artifacts", "overlays")

var (
	image  = regexp.MustCompile(`(?m)^\s*(?:- )?image:\s*(\S+)`)
	pinned = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// Image is an image in a registry, in place of one that manifests have by its short name.
type Image struct {
	// Name in manifests, such as jobset-apiserver.
	Name string `json:"name"`
	// NewName is the whole name without a tag.
	NewName string `json:"newName"`
	// Digest is sha256: and 64 hexadecimal digits.
	Digest string `json:"digest"`
}

// Overlays returns the names of all overlays in a checkout of the repository.
func Overlays(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, overlaysDir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Render returns the objects of an overlay. Each image must be one of those that are given.
func Render(root, overlay string, images []Image) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(root, overlaysDir, overlay, "kustomization.yaml")); err != nil {
		names, _ := Overlays(root)
		return nil, fmt.Errorf("the overlay must be one of %v, is %q", names, overlay)
	}
	text, err := build(root, overlay, images)
	if err != nil {
		return nil, fmt.Errorf("rendering the overlay %s: %w", overlay, err)
	}
	for _, match := range image.FindAllSubmatch(text, -1) {
		if !pinned.Match(match[1]) {
			return nil, fmt.Errorf("rendering the overlay %s: image %s has no digest: add its program to those that get an image",
				overlay, match[1])
		}
	}
	return text, nil
}

// build runs kustomize on a directory of its own, whose only resource is the overlay.
func build(root, overlay string, images []Image) ([]byte, error) {
	dir, err := os.MkdirTemp("", "jobset-manifests-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	resource, err := filepath.Abs(filepath.Join(root, overlaysDir, overlay))
	if err != nil {
		return nil, err
	}
	if resource, err = filepath.EvalSymlinks(resource); err != nil {
		return nil, err
	}
	// Kustomize accepts relative paths only.
	if resource, err = filepath.Rel(dir, resource); err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(map[string]any{"resources": []string{resource}, "images": images})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o600); err != nil {
		return nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}
