// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) volumes(volumes []corev1.Volume, path *field.Path) {
	for i := range volumes {
		c.text(path.Index(i).Child("name"), volumes[i].Name)
		source := &volumes[i].VolumeSource
		c.localSources(source, path.Index(i))
		c.fileSystems(source, path.Index(i))
		c.blockSources(source, path.Index(i))
		c.cloudSources(source, path.Index(i))
		c.vendorSources(source, path.Index(i))
		c.projected(source.Projected, path.Index(i).Child("projected"))
	}
	unique(c, path, volumes, func(v *corev1.Volume) string { return v.Name })
}

// localSources are the sources that the cluster itself provides.
func (c *checker) localSources(source *corev1.VolumeSource, path *field.Path) {
	if source.HostPath != nil {
		c.text(path.Child("hostPath", "path"), source.HostPath.Path)
	}
	if source.Secret != nil {
		c.keyPaths(source.Secret.Items, path.Child("secret", "items"))
	}
	if source.ConfigMap != nil {
		c.keyPaths(source.ConfigMap.Items, path.Child("configMap", "items"))
	}
	if source.DownwardAPI != nil {
		c.downwardFiles(source.DownwardAPI.Items, path.Child("downwardAPI", "items"))
	}
	if source.PersistentVolumeClaim != nil {
		c.text(path.Child("persistentVolumeClaim", "claimName"), source.PersistentVolumeClaim.ClaimName)
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		spec := &source.Ephemeral.VolumeClaimTemplate.Spec
		specPath := path.Child("ephemeral", "volumeClaimTemplate", "spec")
		c.present(specPath, !equality.Semantic.DeepEqual(*spec, corev1.PersistentVolumeClaimSpec{}))
		c.claimSpec(spec, specPath)
	}
	if source.GitRepo != nil {
		c.text(path.Child("gitRepo", "repository"), source.GitRepo.Repository)
	}
	if source.CSI != nil {
		c.text(path.Child("csi", "driver"), source.CSI.Driver)
	}
	if source.FlexVolume != nil {
		c.text(path.Child("flexVolume", "driver"), source.FlexVolume.Driver)
	}
}

// fileSystems checks the sources of network file systems.
func (c *checker) fileSystems(source *corev1.VolumeSource, path *field.Path) {
	if nfs := source.NFS; nfs != nil {
		c.text(path.Child("nfs", "server"), nfs.Server)
		c.text(path.Child("nfs", "path"), nfs.Path)
	}
	if glusterfs := source.Glusterfs; glusterfs != nil {
		c.text(path.Child("glusterfs", "endpoints"), glusterfs.EndpointsName)
		c.text(path.Child("glusterfs", "path"), glusterfs.Path)
	}
	if source.CephFS != nil {
		c.present(path.Child("cephfs", "monitors"), source.CephFS.Monitors != nil)
	}
	if quobyte := source.Quobyte; quobyte != nil {
		c.text(path.Child("quobyte", "registry"), quobyte.Registry)
		c.text(path.Child("quobyte", "volume"), quobyte.Volume)
	}
	if source.AzureFile != nil {
		c.text(path.Child("azureFile", "secretName"), source.AzureFile.SecretName)
		c.text(path.Child("azureFile", "shareName"), source.AzureFile.ShareName)
	}
}

// blockSources are the sources of network block devices. The lun of iscsi is left alone: 0 is legal.
func (c *checker) blockSources(source *corev1.VolumeSource, path *field.Path) {
	if iscsi := source.ISCSI; iscsi != nil {
		c.text(path.Child("iscsi", "targetPortal"), iscsi.TargetPortal)
		c.text(path.Child("iscsi", "iqn"), iscsi.IQN)
	}
	if rbd := source.RBD; rbd != nil {
		c.present(path.Child("rbd", "monitors"), rbd.CephMonitors != nil)
		c.text(path.Child("rbd", "image"), rbd.RBDImage)
	}
	if scaleIO := source.ScaleIO; scaleIO != nil {
		c.text(path.Child("scaleIO", "gateway"), scaleIO.Gateway)
		c.text(path.Child("scaleIO", "system"), scaleIO.System)
		c.present(path.Child("scaleIO", "secretRef"), scaleIO.SecretRef != nil)
	}
}

// cloudSources are the disks of cloud providers.
func (c *checker) cloudSources(source *corev1.VolumeSource, path *field.Path) {
	if source.GCEPersistentDisk != nil {
		c.text(path.Child("gcePersistentDisk", "pdName"), source.GCEPersistentDisk.PDName)
	}
	if source.AWSElasticBlockStore != nil {
		c.text(path.Child("awsElasticBlockStore", "volumeID"), source.AWSElasticBlockStore.VolumeID)
	}
	if source.Cinder != nil {
		c.text(path.Child("cinder", "volumeID"), source.Cinder.VolumeID)
	}
	if source.AzureDisk != nil {
		c.text(path.Child("azureDisk", "diskName"), source.AzureDisk.DiskName)
		c.text(path.Child("azureDisk", "diskURI"), source.AzureDisk.DataDiskURI)
	}
}

// vendorSources are the disks of storage vendors.
func (c *checker) vendorSources(source *corev1.VolumeSource, path *field.Path) {
	if source.VsphereVolume != nil {
		c.text(path.Child("vsphereVolume", "volumePath"), source.VsphereVolume.VolumePath)
	}
	if source.PhotonPersistentDisk != nil {
		c.text(path.Child("photonPersistentDisk", "pdID"), source.PhotonPersistentDisk.PdID)
	}
	if source.PortworxVolume != nil {
		c.text(path.Child("portworxVolume", "volumeID"), source.PortworxVolume.VolumeID)
	}
}

func (c *checker) projected(projected *corev1.ProjectedVolumeSource, path *field.Path) {
	if projected == nil {
		return
	}
	for i := range projected.Sources {
		source, p := &projected.Sources[i], path.Child("sources").Index(i)
		if source.Secret != nil {
			c.keyPaths(source.Secret.Items, p.Child("secret", "items"))
		}
		if source.ConfigMap != nil {
			c.keyPaths(source.ConfigMap.Items, p.Child("configMap", "items"))
		}
		if source.DownwardAPI != nil {
			c.downwardFiles(source.DownwardAPI.Items, p.Child("downwardAPI", "items"))
		}
		if source.ServiceAccountToken != nil {
			c.text(p.Child("serviceAccountToken", "path"), source.ServiceAccountToken.Path)
		}
		if bundle := source.ClusterTrustBundle; bundle != nil {
			c.text(p.Child("clusterTrustBundle", "path"), bundle.Path)
			c.labelSelector(bundle.LabelSelector, p.Child("clusterTrustBundle", "labelSelector"))
		}
		if certificate := source.PodCertificate; certificate != nil {
			c.text(p.Child("podCertificate", "keyType"), certificate.KeyType)
			c.text(p.Child("podCertificate", "signerName"), certificate.SignerName)
		}
	}
}

func (c *checker) keyPaths(items []corev1.KeyToPath, path *field.Path) {
	for i := range items {
		c.text(path.Index(i).Child("key"), items[i].Key)
		c.text(path.Index(i).Child("path"), items[i].Path)
	}
}

func (c *checker) downwardFiles(items []corev1.DownwardAPIVolumeFile, path *field.Path) {
	for i := range items {
		c.text(path.Index(i).Child("path"), items[i].Path)
		c.fieldRef(items[i].FieldRef, path.Index(i).Child("fieldRef"))
		c.resourceFieldRef(items[i].ResourceFieldRef, path.Index(i).Child("resourceFieldRef"))
	}
}

// ValidateClaimSpec checks the schema of an embedded volume claim.
func ValidateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	c := &checker{}
	c.claimSpec(spec, path)
	return c.errs
}

func (c *checker) claimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) {
	c.labelSelector(spec.Selector, path.Child("selector"))
	if source := spec.DataSource; source != nil {
		c.text(path.Child("dataSource", "kind"), source.Kind)
		c.text(path.Child("dataSource", "name"), source.Name)
	}
	if source := spec.DataSourceRef; source != nil {
		c.text(path.Child("dataSourceRef", "kind"), source.Kind)
		c.text(path.Child("dataSourceRef", "name"), source.Name)
	}
}
