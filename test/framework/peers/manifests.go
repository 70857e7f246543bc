// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers runs programs of other projects beside a local cluster, with the manifests of their releases.
package peers

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// installed are the kinds that a program needs that runs on the machine of the tests. Its Deployment is that program,
// and what leads to the Deployment inside a cluster would lead nowhere.
var installed = []string{
	"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// module is the directory of the module of the program.
func (p *Peer) module() (string, error) {
	out, err := output("go", "list", "-C", filepath.Join(p.cluster.Root, "hack", "peers", p.Name), "-m", "-f", "{{.Dir}}", p.Module)
	return strings.TrimSpace(out), err
}

// manifests renders the bases in the namespace of the program. The files are read from the module cache.
func (p *Peer) manifests() ([]*unstructured.Unstructured, error) {
	binaries, err := localcluster.TestBinaries(p.cluster.Root)
	if err != nil {
		return nil, err
	}
	module, err := p.module()
	if err != nil {
		return nil, err
	}
	kustomization := fmt.Sprintf("namespace: %s\nresources:\n", p.Namespace)
	for _, base := range p.Bases {
		relative, err := filepath.Rel(p.dir, filepath.Join(module, base)) // an absolute path is refused
		if err != nil {
			return nil, err
		}
		kustomization += "- " + relative + "\n"
	}
	if err := os.WriteFile(filepath.Join(p.dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		return nil, err
	}
	rendered, err := output(filepath.Join(binaries, "kustomize"), "build", p.dir)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(rendered), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(installed, object.GetKind()) {
			objects = append(objects, object)
		}
	}
}

// callHere makes kube-apiserver and our server call the webhooks of the objects at a port of this machine.
func callHere(objects []*unstructured.Unstructured, port string, ca []byte) error {
	for _, object := range objects {
		switch object.GetKind() {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
			if err != nil {
				return err
			}
			for _, webhook := range webhooks {
				if err := callPort(webhook.(map[string]any), port, ca, "clientConfig"); err != nil {
					return err
				}
			}
			if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
				return err
			}
		case "CustomResourceDefinition":
			fields := []string{"spec", "conversion", "webhook", "clientConfig"}
			if _, converts, err := unstructured.NestedMap(object.Object, fields...); err != nil || !converts {
				if err != nil {
					return err
				}
				continue
			}
			if err := callPort(object.Object, port, ca, fields...); err != nil {
				return err
			}
		}
	}
	return nil
}

func callPort(object map[string]any, port string, ca []byte, fields ...string) error {
	path, _, err := unstructured.NestedString(object, append(slices.Clone(fields), "service", "path")...)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(object, map[string]any{
		"url": "https://127.0.0.1:" + port + path, "caBundle": base64.StdEncoding.EncodeToString(ca),
	}, fields...)
}

func output(program string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
