// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SharedStorageClass is the storage class of real nodes whose volumes are directories of this machine. All nodes and
// the tests see the same files.
const SharedStorageClass = "shared"

const (
	// provisioner is the program that makes the volumes, and its name in their annotations.
	provisioner          = "volumes"
	provisionerName      = "jobset-apiserver.io/" + provisioner
	provisionedBy        = "pv.kubernetes.io/provisioned-by"
	provisionInterval    = 300 * time.Millisecond
	persistentVolumePath = "/api/v1/persistentvolumes"
)

// upVolumes starts the program that makes volumes for claims.
func (c *supervisor) upVolumes(ctx context.Context) error {
	err := c.admin.apply(ctx, "/apis/storage.k8s.io/v1/storageclasses/"+SharedStorageClass, map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": SharedStorageClass},
		"provisioner": provisionerName, "reclaimPolicy": corev1.PersistentVolumeReclaimDelete,
	})
	if err != nil {
		return err
	}
	if _, runs := c.pid(provisioner); runs {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	say("starting " + provisioner)
	return c.start(provisioner, self, c.root, provisioner, c.kubeconfig(), c.path("volumes"))
}

// provisionVolumes makes a directory and a volume for each claim that asks for one, and removes those of claims that
// are gone, until it is stopped. Its arguments are the kubeconfig and the directory of the volumes. It is no command
// for users.
func provisionVolumes(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return ErrUsage
	}
	kubeconfig, dir := args[0], args[1]
	admin, err := newAdmin(kubeconfig)
	if err != nil {
		return err
	}
	said := ""
	for ; ctx.Err() == nil; time.Sleep(provisionInterval) {
		// It runs until the cluster goes; what fails is tried again, and said once.
		if err := errors.Join(provision(ctx, admin, dir), reclaim(ctx, admin, dir)); err != nil && err.Error() != said {
			said = err.Error()
			say(said)
		}
	}
	return ctx.Err()
}

// provision makes what claims of the class wait for.
func provision(ctx context.Context, admin *admin, dir string) error {
	var claims corev1.PersistentVolumeClaimList
	if err := admin.get(ctx, "/api/v1/persistentvolumeclaims?resourceVersion=0", &claims); err != nil {
		return err
	}
	var errs []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		if ptr.Deref(claim.Spec.StorageClassName, "") != SharedStorageClass || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
			continue
		}
		volume := volumeFor(claim, dir)
		path := volume.Spec.HostPath.Path
		// Programs of any user write to it, as to a volume with a group of its own.
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, 0o777)); err != nil {
			errs = append(errs, err)
			continue
		}
		var status *statusError
		if err := admin.post(ctx, persistentVolumePath, volume, nil); err != nil && (!errors.As(err, &status) || status.code != http.StatusConflict) {
			errs = append(errs, fmt.Errorf("the volume of %s/%s: %w", claim.Namespace, claim.Name, err))
		}
	}
	return errors.Join(errs...)
}

// volumeFor returns the volume of a claim, which is bound to that claim.
func volumeFor(claim *corev1.PersistentVolumeClaim, dir string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: SharedStorageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, name)}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
}

// reclaim removes volumes whose claims are gone, with their directories.
func reclaim(ctx context.Context, admin *admin, dir string) error {
	var volumes corev1.PersistentVolumeList
	if err := admin.get(ctx, persistentVolumePath+"?resourceVersion=0", &volumes); err != nil {
		return err
	}
	var errs []error
	for _, volume := range volumes.Items {
		host := volume.Spec.HostPath
		if volume.Annotations[provisionedBy] != provisionerName || volume.Status.Phase != corev1.VolumeReleased ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || host == nil || filepath.Dir(host.Path) != dir {
			continue
		}
		if err := os.RemoveAll(host.Path); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, admin.do(ctx, http.MethodDelete, persistentVolumePath+"/"+volume.Name, "", nil, nil))
	}
	return errors.Join(errs...)
}
