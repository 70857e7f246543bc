// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	diffs "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlay is an installation with kustomize.
type overlay struct {
	name       string
	components []string
	// gates is a flag that both programs get in addition.
	gates string
}

// databaseOfOverlay are the values of the chart for the database in the component postgres-archive.
const databaseOfOverlay = "archive: {database: 'postgres://jobset@postgres.databases.svc:5432/jobset?sslmode=verify-full'}"

// postgresValues are the values of the chart for the overlay external-etcd-postgres-archive.
const postgresValues = "{store: {type: external}, " + databaseOfOverlay + "}"

// installations are the values of the chart, and what gives the same with kustomize.
var installations = map[string]overlay{
	"{}":                       {name: "embedded"},
	"apiserver: {replicas: 3}": {name: "embedded-ha"},
	"{apiserver: {replicas: 3}, store: {embedded: {backup: {enabled: true}}}}":                       {name: "embedded-ha", components: []string{"embedded-members-backup"}},
	"{apiserver: {replicas: 3}, store: {embedded: {backup: {enabled: true, s3: {enabled: true}}}}}":  {name: "embedded-ha-backup-s3"},
	"{apiserver: {replicas: 3}, monitoring: {serviceMonitors: true, rules: true, dashboards: true}}": {name: "embedded-ha", components: []string{"monitoring"}},
	"{apiserver: {replicas: 3}, kinds: {leaderworkerset: false, disaggregatedset: false}}":           {name: "embedded-ha", components: []string{"without-leaderworkerset"}},
	"store: {embedded: {backup: {enabled: true}}}":                                                   {name: "embedded-backup"},
	"store: {embedded: {backup: {enabled: true, s3: {enabled: true}}}}":                              {name: "embedded-backup-s3"},
	"store: {type: external, external: {backup: {s3: {enabled: true}}}}":                             {name: "external-etcd-backup-s3"},
	"tls: {mode: secret}":                                                                           {name: "embedded", components: []string{"tls-secret"}},
	"{store: {type: external}, tls: {mode: secret}}":                                                {name: "external-etcd", components: []string{"tls-secret"}},
	"tls: {mode: cert-manager}":                                                                     {name: "embedded-cert-manager"},
	"monitoring: {serviceMonitors: true, rules: true, dashboards: true}":                            {name: "embedded-monitoring"},
	"store: {type: external}":                                                                       {name: "external-etcd"},
	"{store: {type: external}, tls: {mode: cert-manager}}":                                          {name: "external-etcd-cert-manager"},
	"kinds: {leaderworkerset: false}":                                                               {name: "embedded", components: []string{"without-leaderworkerset"}},
	"{store: {type: external}, kinds: {leaderworkerset: false}, tls: {mode: cert-manager}}":         {name: "external-etcd-cert-manager", components: []string{"without-leaderworkerset"}},
	"kinds: {jobset: false}":                                                                        {name: "embedded", components: []string{"without-jobset"}},
	"kinds: {sequentialjob: false}":                                                                 {name: "embedded", components: []string{"without-sequentialjob"}},
	"kinds: {disaggregatedset: true}":                                                               {name: "embedded", components: []string{"disaggregatedset"}},
	"{store: {type: external}, kinds: {disaggregatedset: true}}":                                    {name: "external-etcd", components: []string{"disaggregatedset"}},
	"{store: {type: external}, monitoring: {serviceMonitors: true, rules: true, dashboards: true}}": {name: "external-etcd", components: []string{"monitoring"}},
	"featureGates: {JobSetWorkloadAwareSchedulingAPI: true}": {
		name: "embedded", components: []string{"pod-groups"}, gates: "--feature-gates=JobSetWorkloadAwareSchedulingAPI=true",
	},
	"archive: {database: sqlite}": {name: "embedded-archive"},
	postgresValues:                {name: "external-etcd-postgres-archive"},
	"{apiserver: {replicas: 3}, " + databaseOfOverlay + "}": {name: "embedded-ha", components: []string{"postgres-archive"}},
	"controller: {serviceEndpoints: {mode: cluster}}":       {name: "embedded", components: []string{"without-endpoints"}},
	"featureGates: {SequentialJobWorkload: true}": {
		name: "embedded", components: []string{"sequentialjob-workload"}, gates: "--feature-gates=SequentialJobWorkload=true",
	},
}

// TestOverlays compares what the chart renders with what kustomize builds, object by object.
func TestOverlays(t *testing.T) {
	for values, o := range installations {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			want, got := o.build(t), release{values: values}.objects(t)
			for key := range want {
				if got[key] == nil {
					t.Errorf("the chart lacks %s", key)
				}
			}
			for key, rendered := range got {
				if want[key] == nil {
					t.Errorf("the overlay lacks %s", key)
				} else if diff := diffs.Diff(normal(want[key]), normal(rendered)); diff != "" {
					t.Errorf("%s differs (-overlay +chart):\n%s", key, diff)
				}
			}
			if len(want) < 30 {
				t.Errorf("%d objects were compared", len(want))
			}
		})
	}
}

// etcdConfig is the name of a ConfigMap to which kustomize adds a hash.
var etcdConfig = regexp.MustCompile(`jobset-apiserver-etcd-[0-9a-z]{10}`)

// build returns what kustomize builds for an operator who names the images of the chart.
func (o overlay) build(t *testing.T) objects {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	artifacts, err := filepath.Abs(filepath.Join(root, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	if artifacts, err = filepath.Rel(dir, artifacts); err != nil {
		t.Fatal(err)
	}
	version := loadChart(t).Metadata.AppVersion
	kustomization := object{
		"resources": []string{filepath.Join(artifacts, "overlays", o.name)},
		"images":    []object{{"name": "jobset-apiserver", "newTag": version}, {"name": "jobset-controller", "newTag": version}},
	}
	var components []string
	for _, name := range o.components {
		components = append(components, filepath.Join(artifacts, "components", name))
	}
	kustomization["components"] = components
	if o.gates != "" {
		kustomization["patches"] = []object{{
			"target": object{"kind": "Deployment|StatefulSet"},
			"patch":  `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "` + o.gates + `"}]`,
		}}
	}
	content, err := yaml.Marshal(kustomization)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return o.run(t, dir)
}

func (o overlay) run(t *testing.T, dir string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(etcdConfig.ReplaceAll(text, []byte("jobset-apiserver-etcd"))))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// normal removes from an object what only Helm needs, and the order of lists where it has no meaning.
func normal(o object) object {
	// The base has the label part-of, and components do not.
	drop(o, "labels", "helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of")
	drop(o, "annotations", "helm.sh/resource-policy")
	pod, ok := value(o, "spec", "template").(object)
	if !ok {
		return o
	}
	// Replaces the pods when the addresses of etcd change, as the hash in the name of kustomize's ConfigMap does.
	drop(pod, "annotations", "jobset-apiserver.io/etcd")
	byName(value(pod, "spec", "volumes"))
	containers, _ := value(pod, "spec", "containers").([]any)
	for _, c := range containers {
		byName(value(c, "env"))
		byName(value(c, "volumeMounts"))
	}
	return o
}

// drop removes keys of a map of metadata, and the map if it is empty then.
func drop(o object, field string, keys ...string) {
	metadata, _ := o["metadata"].(object)
	entries, _ := metadata[field].(object)
	for _, key := range keys {
		delete(entries, key)
	}
	if len(entries) == 0 {
		delete(metadata, field)
	}
}

func value(from any, path ...string) any {
	for _, step := range path {
		o, _ := from.(object)
		from = o[step]
	}
	return from
}

func byName(list any) {
	entries, _ := list.([]any)
	slices.SortFunc(entries, func(a, b any) int {
		x, _ := value(a, "name").(string)
		y, _ := value(b, "name").(string)
		return cmp.Compare(x, y)
	})
}
