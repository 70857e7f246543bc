// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is what the published schema says of a type.
type rule struct {
	of reflect.Type
	// required are the keys that must be present, and unique the keys that distinguish the items of a list of the type.
	required, unique []string
}

// has says which keys values of a type must have.
func has[T any](required ...string) rule { return rule{of: reflect.TypeFor[T](), required: required} }

// by says which keys distinguish the items of a list.
func (r rule) by(keys ...string) rule {
	r.unique = keys
	return r
}

// published is the schema. Typed decoding does not distinguish a missing key from a zero value, so only keys whose zero value no child can
// have are required. The lun of iscsi, the seconds of sleep, the value of a header and the preference for nodes may be zero.
var published = []rule{
	// Jobs
	has[batchv1.PodFailurePolicy]("rules"),
	has[batchv1.PodFailurePolicyRule]("action"),
	has[batchv1.PodFailurePolicyOnExitCodesRequirement]("operator", "values"),
	has[batchv1.PodFailurePolicyOnPodConditionsPattern]("type"),
	has[batchv1.SuccessPolicy]("rules"),
	has[metav1.LabelSelectorRequirement]("key", "operator"),

	// Pods
	has[corev1.LocalObjectReference]().by("name"),
	has[corev1.HostAlias]("ip").by("ip"),
	has[corev1.PodReadinessGate]("conditionType"),
	has[corev1.PodSchedulingGate]("name").by("name"),
	has[corev1.PodResourceClaim]("name").by("name"),
	has[corev1.PodOS]("name"),
	has[corev1.Sysctl]("name"),
	has[corev1.SeccompProfile]("type"),
	has[corev1.AppArmorProfile]("type"),
	has[corev1.NodeSelector]("nodeSelectorTerms"),
	has[corev1.NodeSelectorRequirement]("key", "operator"),
	has[corev1.PreferredSchedulingTerm]("weight"),
	has[corev1.WeightedPodAffinityTerm]("weight"),
	has[corev1.PodAffinityTerm]("topologyKey"),
	has[corev1.TopologySpreadConstraint]("maxSkew", "topologyKey", "whenUnsatisfiable").by("topologyKey", "whenUnsatisfiable"),

	// Containers
	has[corev1.Container]("name").by("name"),
	has[corev1.EphemeralContainer]("name").by("name"),
	has[corev1.ContainerPort]("containerPort").by("containerPort", "protocol"),
	has[corev1.EnvVar]("name").by("name"),
	has[corev1.ConfigMapKeySelector]("key"),
	has[corev1.SecretKeySelector]("key"),
	has[corev1.ObjectFieldSelector]("fieldPath"),
	has[corev1.ResourceFieldSelector]("resource"),
	has[corev1.FileKeySelector]("key", "path", "volumeName"),
	has[corev1.VolumeMount]("mountPath", "name").by("mountPath"),
	has[corev1.VolumeDevice]("devicePath", "name").by("devicePath"),
	has[corev1.ResourceClaim]("name").by("name"),
	has[corev1.ContainerResizePolicy]("resourceName", "restartPolicy"),
	has[corev1.ContainerRestartRule]("action"),
	has[corev1.ContainerRestartRuleOnExitCodes]("operator"),
	has[corev1.HTTPGetAction]("port"),
	has[corev1.HTTPHeader]("name"),
	has[corev1.TCPSocketAction]("port"),
	has[corev1.GRPCAction]("port"),

	// Volumes of the cluster
	has[corev1.Volume]("name").by("name"),
	has[corev1.HostPathVolumeSource]("path"),
	has[corev1.KeyToPath]("key", "path"),
	has[corev1.DownwardAPIVolumeFile]("path"),
	has[corev1.PersistentVolumeClaimVolumeSource]("claimName"),
	has[corev1.PersistentVolumeClaimTemplate]("spec"),
	has[corev1.TypedLocalObjectReference]("kind", "name"),
	has[corev1.TypedObjectReference]("kind", "name"),
	has[corev1.GitRepoVolumeSource]("repository"),
	has[corev1.CSIVolumeSource]("driver"),
	has[corev1.FlexVolumeSource]("driver"),
	has[corev1.ServiceAccountTokenProjection]("path"),
	has[corev1.ClusterTrustBundleProjection]("path"),
	has[corev1.PodCertificateProjection]("keyType", "signerName"),

	// Network file systems, block devices, and the disks of cloud providers and of storage vendors
	has[corev1.NFSVolumeSource]("server", "path"),
	has[corev1.GlusterfsVolumeSource]("endpoints", "path"),
	has[corev1.CephFSVolumeSource]("monitors"),
	has[corev1.QuobyteVolumeSource]("registry", "volume"),
	has[corev1.AzureFileVolumeSource]("secretName", "shareName"),
	has[corev1.ISCSIVolumeSource]("targetPortal", "iqn"),
	has[corev1.RBDVolumeSource]("monitors", "image"),
	has[corev1.ScaleIOVolumeSource]("gateway", "system", "secretRef"),
	has[corev1.GCEPersistentDiskVolumeSource]("pdName"),
	has[corev1.AWSElasticBlockStoreVolumeSource]("volumeID"),
	has[corev1.CinderVolumeSource]("volumeID"),
	has[corev1.AzureDiskVolumeSource]("diskName", "diskURI"),
	has[corev1.VsphereVirtualDiskVolumeSource]("volumePath"),
	has[corev1.PhotonPersistentDiskVolumeSource]("pdID"),
	has[corev1.PortworxVolumeSource]("volumeID"),
}

// checkedField is a field by its key.
type checkedField struct {
	name  string
	index []int
}

// checkedType is what is checked of the values of a type, and of a list of them: fields that must be present, fields below which there is
// something to check, and fields that distinguish items.
type checkedType struct {
	required, below, unique []checkedField
}

// checkedTypes has the types below the templates that have something to check.
var checkedTypes = func() map[reflect.Type]*checkedType {
	rules, types := map[reflect.Type]rule{}, map[reflect.Type]*checkedType{}
	for _, r := range published {
		rules[r.of] = r
	}
	for _, t := range []reflect.Type{reflect.TypeFor[batchv1.JobSpec](), reflect.TypeFor[corev1.PodSpec](),
		reflect.TypeFor[corev1.PersistentVolumeClaimSpec]()} {
		prepare(t, rules, types)
	}
	return types
}()

// prepare finds out what is checked of a type. It returns false if that is nothing. Templates of pods are checked by themselves.
func prepare(t reflect.Type, rules map[reflect.Type]rule, types map[reflect.Type]*checkedType) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[corev1.PodTemplateSpec]() {
		return false
	}
	checked, known := types[t]
	if !known {
		checked = &checkedType{}
		types[t] = checked
		fields := fieldsOf(t)
		for _, f := range fields {
			if prepare(t.FieldByIndex(f.index).Type, rules, types) {
				checked.below = append(checked.below, f)
			}
		}
		checked.required, checked.unique = named(fields, rules[t].required), named(fields, rules[t].unique)
	}
	return len(checked.required) > 0 || len(checked.below) > 0 || len(checked.unique) > 0
}

// fieldsOf returns the fields of a type that have a key. What is inlined is a field by itself.
func fieldsOf(t reflect.Type) (fields []checkedField) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && f.IsExported() {
			fields = append(fields, checkedField{name, f.Index})
		}
	}
	return fields
}

func named(fields []checkedField, names []string) (found []checkedField) {
	for _, name := range names {
		at := slices.IndexFunc(fields, func(f checkedField) bool { return f.name == name })
		found = append(found, fields[at])
	}
	return found
}

// schema checks a value of a type that has something to check.
func (c *checker) schema(v reflect.Value, path *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.schema(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.schema(v.Index(i), path.Index(i))
		}
		c.unique(v, path)
	case reflect.Struct:
		checked := checkedTypes[v.Type()]
		for _, f := range checked.required {
			if absent(v.FieldByIndex(f.index)) {
				c.errs = append(c.errs, field.Required(path.Child(f.name), "must be set"))
			}
		}
		for _, f := range checked.below {
			// Most pointers and lists are nil, and need no path.
			if below := v.FieldByIndex(f.index); below.Kind() == reflect.Struct || !below.IsZero() {
				c.schema(below, path.Child(f.name))
			}
		}
	}
}

func absent(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Struct && equality.Semantic.DeepEqual(v.Interface(), reflect.Zero(v.Type()).Interface())
}

// unique reports items whose keys an earlier item of the list has.
func (c *checker) unique(list reflect.Value, path *field.Path) {
	keys := checkedTypes[list.Type().Elem()].unique
	if len(keys) == 0 {
		return
	}
	seen := make(map[string]struct{}, list.Len())
	for i := range list.Len() {
		var values []string
		for _, key := range keys {
			values = append(values, fmt.Sprint(list.Index(i).FieldByIndex(key.index)))
		}
		k := strings.Join(values, "/")
		if _, dup := seen[k]; dup {
			c.errs = append(c.errs, Duplicate(path.Index(i), k))
		}
		seen[k] = struct{}{}
	}
}
