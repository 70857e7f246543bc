// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// ProgramImage is the name of the image of test/nodes/program. Nodes hold the namespaces of their pods with it, and tests run it.
const ProgramImage = "localhost/jobset-tests:1"

// programImage builds the image, and returns the archive that has it.
func (c *supervisor) programImage() (string, error) {
	program, archive := c.path("program"), c.path("program.tar")
	cmd := exec.Command("go", "build", "-C", c.root, "-trimpath", "-ldflags=-s -w", "-o", program, "./test/nodes/program")
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("test/nodes/program does not build: %w", err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	image, err := imageOf(content, "program", ProgramImage)
	if err != nil {
		return "", err
	}
	return archive, os.WriteFile(archive, image, 0o644)
}

// imageOf returns an archive of an image with one static program at that path, in the form that containerd imports.
func imageOf(program []byte, path, reference string) ([]byte, error) {
	layer, err := tarOf(tarFile{path, 0o755, program})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/" + path}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{reference}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return tarOf(tarFile{"manifest.json", 0o644, manifest}, tarFile{"config.json", 0o644, config}, tarFile{"layer.tar", 0o644, layer})
}

type tarFile struct {
	name    string
	mode    int64
	content []byte
}

func tarOf(files ...tarFile) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, file := range files {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
