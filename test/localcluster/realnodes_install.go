// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// podVersion is the tag of our images on real nodes.
const podVersion = "v0.0.0-local"

// podPrograms are our programs that run as pods, and the objects that own their pods.
var podPrograms = []struct{ image, workload string }{
	{"jobset-apiserver", "statefulsets/jobset-apiserver"},
	{"jobset-controller", "deployments/jobset-controller"},
}

// agent is the image of the agent of in-place restarts, which runs in pods of users. AgentImage is its name on real nodes.
const (
	agent      = "jobset-restart-agent"
	AgentImage = agent + ":" + podVersion
)

// plugin is the image of the plugin for kubectl, which runs migrations. PluginImage is its name on real nodes.
const (
	plugin      = "kubectl-jobset"
	PluginImage = plugin + ":" + podVersion
)

// install installs our programs as pods, by the manifests of artifacts/overlays/embedded, as docs/installation.md describes it.
func (c *supervisor) install(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.prepareInstallation, c.applyManifests} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := c.poll(ctx, "setup", "our pods are not ready", c.podsReady); err != nil {
		return err
	}
	return c.poll(ctx, "setup", "kube-apiserver does not reach JobSets", c.available)
}

// prepareInstallation does what an operator's cluster has already: it can pull our images, and provides volumes. Nothing is installed yet.
func (c *supervisor) prepareInstallation(ctx context.Context) error {
	return errors.Join(c.ownImages(ctx), c.ownVolume(ctx))
}

// ownImages builds our images and makes them known to the nodes.
func (c *supervisor) ownImages(context.Context) error {
	say("building the images of our programs")
	cmd := exec.Command("make", "--no-print-directory", "-s", "-C", c.root, "images", "VERSION="+podVersion)
	cmd.Env = append(os.Environ(), "PLATFORMS=linux/"+runtime.GOARCH, "OUTPUT="+c.path("images"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("our images do not build: %w", err)
	}
	return c.importImages()
}

// importImages makes our images known to all nodes at the same time: unpacking them waits for the disk.
func (c *supervisor) importImages() error {
	nodes := c.realNodeList()
	imported := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() {
			var errs []error
			for _, image := range []string{podPrograms[0].image, podPrograms[1].image, agent, plugin} {
				errs = append(errs, n.importImage(c.path("images", image+".tar")))
			}
			imported <- errors.Join(errs...)
		}()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-imported)
	}
	return errors.Join(errs...)
}

// ownVolume makes the volume of our store: a directory on this machine, for pods on the first node.
func (c *supervisor) ownVolume(ctx context.Context) error {
	dir := c.path("volumes", "store")
	if err := errors.Join(os.MkdirAll(dir, 0o750), os.Chown(dir, 65532, 65532)); err != nil {
		return err
	}
	err := c.admin.apply(ctx, "/apis/storage.k8s.io/v1/storageclasses/none", map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner",
		"metadata": map[string]any{"name": "none", "annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}},
	})
	if err != nil {
		return err
	}
	return c.admin.apply(ctx, "/api/v1/persistentvolumes/store", &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "store"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "none", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
			ClaimRef:               &corev1.ObjectReference{Namespace: apiservice.Namespace, Name: "data-jobset-apiserver-0"},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"real-1"}}},
			}}}},
		},
	})
}

// overlay is what an operator writes: the manifests with the images and further flags of the installation.
func (c *supervisor) overlay(from string) (string, error) {
	type object = map[string]any
	var images, patches []object
	args := map[string][]string{"jobset-apiserver": c.apiServerArgs, "jobset-controller": c.controllerArgs}
	for _, p := range podPrograms {
		images = append(images, object{"name": p.image, "newTag": podVersion})
		var operations []object
		for _, arg := range args[p.image] {
			operations = append(operations, object{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": arg})
		}
		if len(operations) > 0 {
			patch, err := json.Marshal(operations)
			if err != nil {
				return "", err
			}
			patches = append(patches, object{"target": object{"name": filepath.Base(p.workload), "group": "apps"}, "patch": string(patch)})
		}
	}
	to, err := filepath.Rel(from, filepath.Join(c.root, "artifacts", "overlays", "embedded"))
	if err != nil {
		return "", err
	}
	components := []string{}
	for _, component := range c.componentsOfGates() {
		relative, err := filepath.Rel(from, component)
		if err != nil {
			return "", err
		}
		components = append(components, relative)
	}
	content, err := json.Marshal(object{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{to}, "components": components, "images": images, "patches": patches,
	})
	return string(content), err
}

func (c *supervisor) applyManifests(context.Context) error {
	say("installing our programs")
	dir := c.path("install")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	content, err := c.overlay(dir)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "kustomization.yaml"), content); err != nil {
		return err
	}
	return c.applyDirectory(dir)
}

// podsReady returns an error unless our programs run as they were applied last.
func (c *supervisor) podsReady(ctx context.Context) error {
	for _, p := range podPrograms {
		// Of both kinds only fields that they share are read.
		var workload appsv1.Deployment
		if err := c.admin.get(ctx, "/apis/apps/v1/namespaces/"+apiservice.Namespace+"/"+p.workload, &workload); err != nil {
			return err
		}
		want, status := ptr.Deref(workload.Spec.Replicas, 1), workload.Status
		if status.ObservedGeneration < workload.Generation || status.UpdatedReplicas < want || status.ReadyReplicas < want {
			return fmt.Errorf("%s: %d of %d pods are ready", p.image, status.ReadyReplicas, want)
		}
	}
	return nil
}
