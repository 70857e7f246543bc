// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// source is a pod with one volume of an empty source of a kind.
func source(s corev1.VolumeSource) func(*batchv1.JobSpec) {
	return pod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: s}} })
}

func TestVolumeKeys(t *testing.T) {
	const at = podPath + "volumes[0]."
	items := []corev1.KeyToPath{{}}
	files := []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{}, ResourceFieldRef: &corev1.ResourceFieldSelector{}}}
	claim := corev1.PersistentVolumeClaimSpec{
		Selector: &selectorWithoutKeys, DataSource: &corev1.TypedLocalObjectReference{}, DataSourceRef: &corev1.TypedObjectReference{},
	}
	runTemplates(t, map[string]templateCase{
		"volume names": {
			change: pod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{}, {Name: "a"}, {Name: "a"}} }),
			prefix: podPath, missing: []string{"volumes[0].name"}, doubled: []string{"volumes[2]"},
		},
		"hostPath":  {change: source(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), prefix: at, missing: []string{"hostPath.path"}},
		"secret":    {change: source(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{Items: items}}), prefix: at + "secret.items[0].", missing: []string{"key", "path"}},
		"configMap": {change: source(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: items}}), prefix: at + "configMap.items[0].", missing: []string{"key", "path"}},
		"downwardAPI": {
			change: source(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: files}}),
			prefix: at + "downwardAPI.items[0].", missing: []string{"path", "fieldRef.fieldPath", "resourceFieldRef.resource"},
		},
		"persistentVolumeClaim": {change: source(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), prefix: at, missing: []string{"persistentVolumeClaim.claimName"}},
		"ephemeral without a spec": {
			change: source(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}),
			prefix: at, missing: []string{"ephemeral.volumeClaimTemplate.spec"},
		},
		"ephemeral": {
			change: source(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}}}),
			prefix: at + "ephemeral.volumeClaimTemplate.spec.",
			missing: []string{"selector.matchExpressions[0].key", "selector.matchExpressions[0].operator",
				"dataSource.kind", "dataSource.name", "dataSourceRef.kind", "dataSourceRef.name"},
		},
		"gitRepo":              {change: source(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}}), prefix: at, missing: []string{"gitRepo.repository"}},
		"csi":                  {change: source(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), prefix: at, missing: []string{"csi.driver"}},
		"flexVolume":           {change: source(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{}}), prefix: at, missing: []string{"flexVolume.driver"}},
		"nfs":                  {change: source(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}), prefix: at, missing: []string{"nfs.server", "nfs.path"}},
		"glusterfs":            {change: source(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}}), prefix: at, missing: []string{"glusterfs.endpoints", "glusterfs.path"}},
		"cephfs":               {change: source(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{}}), prefix: at, missing: []string{"cephfs.monitors"}},
		"quobyte":              {change: source(corev1.VolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}}), prefix: at, missing: []string{"quobyte.registry", "quobyte.volume"}},
		"azureFile":            {change: source(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}}), prefix: at, missing: []string{"azureFile.secretName", "azureFile.shareName"}},
		"iscsi":                {change: source(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}), prefix: at, missing: []string{"iscsi.targetPortal", "iscsi.iqn"}},
		"rbd":                  {change: source(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}), prefix: at, missing: []string{"rbd.monitors", "rbd.image"}},
		"scaleIO":              {change: source(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{}}), prefix: at, missing: []string{"scaleIO.gateway", "scaleIO.system", "scaleIO.secretRef"}},
		"gcePersistentDisk":    {change: source(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}), prefix: at, missing: []string{"gcePersistentDisk.pdName"}},
		"awsElasticBlockStore": {change: source(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}), prefix: at, missing: []string{"awsElasticBlockStore.volumeID"}},
		"cinder":               {change: source(corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{}}), prefix: at, missing: []string{"cinder.volumeID"}},
		"azureDisk":            {change: source(corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}), prefix: at, missing: []string{"azureDisk.diskName", "azureDisk.diskURI"}},
		"vsphereVolume":        {change: source(corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}), prefix: at, missing: []string{"vsphereVolume.volumePath"}},
		"photonPersistentDisk": {change: source(corev1.VolumeSource{PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}}), prefix: at, missing: []string{"photonPersistentDisk.pdID"}},
		"portworxVolume":       {change: source(corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{}}), prefix: at, missing: []string{"portworxVolume.volumeID"}},
		"projected": {
			change: source(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{Items: items}, ConfigMap: &corev1.ConfigMapProjection{Items: items}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}, ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
				{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{LabelSelector: &selectorWithoutKeys}, PodCertificate: &corev1.PodCertificateProjection{}},
			}}}),
			prefix: at + "projected.sources",
			missing: []string{
				"[0].secret.items[0].key", "[0].secret.items[0].path", "[0].configMap.items[0].key", "[0].configMap.items[0].path",
				"[1].downwardAPI.items[0].path", "[1].downwardAPI.items[0].fieldRef.fieldPath", "[1].downwardAPI.items[0].resourceFieldRef.resource",
				"[1].serviceAccountToken.path",
				"[2].clusterTrustBundle.path", "[2].clusterTrustBundle.labelSelector.matchExpressions[0].key", "[2].clusterTrustBundle.labelSelector.matchExpressions[0].operator",
				"[2].podCertificate.keyType", "[2].podCertificate.signerName",
			},
		},
	})
}
