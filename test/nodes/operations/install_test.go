// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// etcdImage has the etcd of this tree. Its name is the one that nodes give to the image of the manifest.
const etcdImage = "docker.io/library/etcd:local"

// overlay is what an operator writes: sets of manifests, with images that the nodes have.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: %s
images:
- {name: jobset-apiserver, newTag: v0.0.0-local}
- {name: jobset-controller, newTag: v0.0.0-local}
- {name: etcd, newTag: local}
`

// install installs as docs/operations/nodes.md describes it, and waits until all of it works.
func install(ctx context.Context) error {
	begin := time.Now()
	root := filepath.Join(shared.Root, "artifacts")
	if _, err := kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, "base", "rbac")); err != nil {
		return err
	}
	// Certificates that are there already are in use.
	if _, err := kubectl(ctx, "--namespace="+namespace, "get", "secrets", "jobset-etcd-tls", "jobset-apiserver-etcd"); err != nil {
		if _, err := command(ctx, filepath.Join(root, "etcd", "certificates.sh")); err != nil {
			return err
		}
	}
	if err := errors.Join(etcdImages(), etcdVolumes(ctx)); err != nil {
		return err
	}
	if err := deploy(ctx, "overlays/external-etcd", "etcd"); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "three servers on three members of etcd were installed in %s\n", time.Since(begin).Round(time.Second))
	return nil
}

// deploy applies manifests, and waits until all of it works.
func deploy(ctx context.Context, manifests ...string) error {
	if err := apply(ctx, manifests); err != nil {
		return err
	}
	if err := allReady(ctx); err != nil {
		return err
	}
	for _, group := range apiservice.Groups {
		if _, err := kubectl(ctx, "wait", "--for=condition=Available", "--timeout=5m", "apiservice/"+apiservice.Name(group)); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, manifests []string) error {
	dir := filepath.Join(shared.Dir, "install")
	var resources []string
	for _, name := range manifests {
		path, err := filepath.Rel(dir, filepath.Join(shared.Root, "artifacts", name))
		if err != nil {
			return err
		}
		resources = append(resources, strconv.Quote(path))
	}
	content := fmt.Appendf(nil, overlay, "["+strings.Join(resources, ", ")+"]")
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o644))
	if err != nil {
		return err
	}
	_, err = kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", dir)
	return err
}

// allReady waits until all pods of the installation are ready, as they were applied last.
func allReady(ctx context.Context) error {
	workloads, err := kubectl(ctx, "--namespace="+namespace, "get", "deployments,statefulsets", "-o", "name")
	if err != nil {
		return err
	}
	for workload := range strings.FieldsSeq(workloads) {
		if _, err := kubectl(ctx, "--namespace="+namespace, "rollout", "status", "--timeout=5m", workload); err != nil {
			return err
		}
	}
	return nil
}

// etcdImages gives the nodes the image of etcd, from the program that the control plane of the cluster uses.
func etcdImages() error {
	archive := filepath.Join(shared.Dir, "etcd.tar")
	if err := localcluster.WriteImage(archive, filepath.Join(binaries, "etcd"), "usr/local/bin/etcd", etcdImage); err != nil {
		return err
	}
	return errors.Join(shared.ImportImage("real-1", archive), shared.ImportImage("real-2", archive))
}

// etcdVolumes makes a volume for each member.
func etcdVolumes(ctx context.Context) error {
	for member := range 3 {
		if err := volume(ctx, fmt.Sprintf("data-jobset-etcd-%d", member)); err != nil {
			return err
		}
	}
	return nil
}

// volume makes a volume for a claim: a directory of this machine, which pods on both nodes see, as if the volume were attached to their node.
func volume(ctx context.Context, claim string) error {
	dir := volumeDir(claim)
	if err := errors.Join(os.MkdirAll(dir, 0o750), os.Chown(dir, 65532, 65532)); err != nil {
		return err
	}
	_, err := core.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "none", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: claim},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func volumeDir(claim string) string { return filepath.Join(shared.Dir, "volumes", claim) }

// emptyVolume deletes the data of a claim.
func emptyVolume(claim string) error { return os.RemoveAll(volumeDir(claim)) }
