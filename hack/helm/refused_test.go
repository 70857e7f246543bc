// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// refused are values that the chart refuses, and what the message must contain: the value, and what it must be.
var refused = map[string]struct{ values, message string }{
	"unknown value":            {"apiserver: {replica: 1}", "at '/apiserver': additional properties 'replica' not allowed"},
	"unknown value at the top": {"replicaCount: 1", "additional properties 'replicaCount' not allowed"},
	"store":                    {"store: {type: etcd}", "at '/store/type': value must be one of 'embedded', 'external'"},
	"size of the claim":        {"store: {embedded: {size: 10G}}", "at '/store/embedded/size': '10G' does not match pattern '^[1-9][0-9]{0,5}(Mi|Gi|Ti)$'"},
	"address without TLS":      {"store: {external: {endpoints: ['http://a:2379']}}", "at '/store/external/endpoints/0': 'http://a:2379' does not match pattern '^https://"},
	"no addresses":             {"store: {external: {endpoints: []}}", "at '/store/external/endpoints': minItems: got 0, want 1"},
	"too many replicas":        {"{store: {type: external}, apiserver: {replicas: 8}}", "at '/apiserver/replicas': maximum: got 8, want 7"},
	"no replicas":              {"{store: {type: external}, apiserver: {replicas: 0}}", "at '/apiserver/replicas': minimum: got 0, want 1"},
	"privileged port":          {"apiserver: {port: 443}", "at '/apiserver/port': minimum: got 443, want 1,024"},
	"mode of TLS":              {"tls: {mode: self-signed}", "at '/tls/mode': value must be one of"},
	"digest":                   {"apiserver: {image: {digest: 'sha256:12'}}", "at '/apiserver/image/digest': 'sha256:12' does not match pattern '^(sha256:[0-9a-f]{64})?$'"},
	"tag":                      {"image: {tag: 'a b'}", "at '/image/tag': 'a b' does not match pattern"},
	"pull policy":              {"image: {pullPolicy: Sometimes}", "at '/image/pullPolicy': value must be one of '', 'Always', 'IfNotPresent', 'Never'"},
	"gate that is no boolean":  {"featureGates: {A: 'true'}", "at '/featureGates/A': got string, want boolean"},
	"name of a gate":           {"featureGates: {a-b: true}", "at '/featureGates': additional properties 'a-b' not allowed"},
	"flag without dashes":      {"apiserver: {extraArgs: [v=4]}", "at '/apiserver/extraArgs/0': 'v=4' does not match pattern '^--[a-z]'"},
	"memory":                   {"controller: {resources: {limits: {memory: 1000000}}}", "at '/controller/resources/limits/memory': got number, want string"},
	"who writes addresses":     {"controller: {serviceEndpoints: {mode: us}}", "at '/controller/serviceEndpoints/mode': value must be one of 'cluster', 'controller', 'auto'"},
	"label of the selectors":   {"apiserver: {podLabels: {app.kubernetes.io/name: x}}", "at '/apiserver/podLabels/app.kubernetes.io~1name': false schema"},
	"senders that are no list": {"networkPolicy: {apiserver: {from: 192.0.2.0/28}}", "at '/networkPolicy/apiserver/from': got string, want array"},
	"no registry": {
		"image: {local: false}", "image.registry: is empty, and no public registry has the image jobset-apiserver: set image.registry to the registry that you " +
			"pushed it to, such as registry.example.com/team, or image.local=true if the nodes have it already",
	},
	"no registry for one image": {
		"{image: {local: false}, apiserver: {image: {repository: example.com/a}}}", "image.registry: is empty, and no public registry has the image jobset-controller: ",
	},
	"images of a registry that nodes have": {
		"image: {local: true, registry: example.com}", "image.registry: is example.com, and image.local=true is for images that the nodes have without a registry: remove one of them",
	},
	"two pods with the embedded store": {
		"apiserver: {replicas: 2}", "apiserver.replicas: is 2, must be 1 or 3 with store.type=embedded, whose etcd has one member in each pod: set it to 1, to 3 (alpha), " +
			"or store.type=external",
	},
	"five pods with the embedded store": {"apiserver: {replicas: 5}", "apiserver.replicas: is 5, must be 1 or 3 with store.type=embedded"},
	"members with a certificate of others": {
		"{apiserver: {replicas: 3}, tls: {mode: cert-manager}}", "tls.mode: is cert-manager, must be managed with three members of the embedded etcd, because the servers also " +
			"make the certificates of the members: set tls.mode=managed, or apiserver.replicas=1",
	},
	"members on one claim": {
		"{apiserver: {replicas: 3}, store: {embedded: {existingClaim: mine}}}", "store.embedded.existingClaim: is mine, but each of three members needs a claim of its own: remove it, or set " +
			"apiserver.replicas=1",
	},
	"backups of members on one claim": {
		"{apiserver: {replicas: 3}, store: {embedded: {backup: {enabled: true, existingClaim: mine}}}}", "store.embedded.backup.existingClaim: is mine, but three members have their backups " +
			"beside their data: remove it, or set apiserver.replicas=1",
	},
	"members on the network of the node": {
		"apiserver: {replicas: 3, hostNetwork: true}", "apiserver.hostNetwork: is true, but the members of the embedded etcd would listen on the ports 2379 and 2380 of their nodes, to which " +
			"NetworkPolicies do not apply: set it to false, or apiserver.replicas=1",
	},
	"ports of the members":              {"apiserver: {replicas: 3, port: 2380}", "apiserver.port: is 2380, which the members of the embedded etcd use: set another port"},
	"bucket without a prefix's slash":   {"store: {embedded: {backup: {s3: {url: 's3://backups/x'}}}}", "at '/store/embedded/backup/s3/url': 's3://backups/x' does not match pattern"},
	"authority that is a path":          {"store: {external: {backup: {s3: {caKey: /etc/ca.crt}}}}", "at '/store/external/backup/s3/caKey': '/etc/ca.crt' does not match pattern"},
	"style that is no boolean":          {"store: {embedded: {backup: {s3: {pathStyle: 'yes'}}}}", "at '/store/embedded/backup/s3/pathStyle': got string, want null or boolean"},
	"copies of no backups":              {"store: {embedded: {backup: {s3: {enabled: true}}}}", "store.embedded.backup.s3.enabled: copies the backups on the claim: set store.embedded.backup.enabled=true as well"},
	"copies of an external store":       {"store: {type: external, embedded: {backup: {enabled: true, s3: {enabled: true}}}}", "store.embedded.backup.s3.enabled: is for store.type=embedded, and store.type is external: set store.external.backup.s3 instead"},
	"CronJob for the embedded store":    {"store: {external: {backup: {s3: {enabled: true}}}}", "store.external.backup.s3.enabled: is for store.type=external, and store.type is embedded: set store.embedded.backup.s3 instead"},
	"volume of the chart":               {"apiserver: {extraVolumes: [{name: tmp, emptyDir: {}}]}", "apiserver.extraVolumes: the volume tmp belongs to the chart: give yours another name"},
	"variable of the chart":             {"controller: {extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]}", "controller.extraEnv: the variable GOMEMLIMIT belongs to the chart: remove it"},
	"volume without a name":             {"controller: {extraVolumes: [{emptyDir: {}}]}", "at '/controller/extraVolumes/0': missing property 'name'"},
	"DisaggregatedSets alone":           {"kinds: {disaggregatedset: true, leaderworkerset: false}", "kinds.disaggregatedset: DisaggregatedSets consist of LeaderWorkerSets: set kinds.leaderworkerset=true as well"},
	"nothing to serve":                  {"kinds: {jobset: false, sequentialjob: false, leaderworkerset: false}", "kinds: all are false, and the server would have nothing to serve: set one of kinds.jobset,"},
	"gate with an APIService":           {"controller: {featureGates: {DisaggregatedSet: true}}", "controller.featureGates.DisaggregatedSet: its APIService belongs to the gate: remove it, and set kinds.disaggregatedset"},
	"authority that cert-manager makes": {"tls: {mode: cert-manager, caBundle: '-----BEGIN CERTIFICATE-----'}", "tls.caBundle: is for tls.mode=secret only, and tls.mode is cert-manager: remove it"},
	"authority that is a file name":     {"tls: {mode: secret, caBundle: ca.crt}", "tls.caBundle: must be certificates in PEM, not a file name or base64: use --set-file tls.caBundle=ca.crt"},
	"Secret that the servers make":      {"tls: {secretName: mine}", "tls.secretName: is mine, and is for tls.mode=secret only: set tls.mode=secret, or remove it"},
	"Secret that cert-manager makes":    {"tls: {mode: cert-manager, secretName: mine}", "tls.secretName: is mine, must be jobset-apiserver-tls with tls.mode=cert-manager, which creates it: remove it"},
	"archive with another database":     {"archive: {database: mysql}", "at '/archive/database': 'mysql' does not match pattern"},
	"retention without a unit":          {"archive: {retention: '365'}", "at '/archive/retention': '365' does not match pattern '^[1-9][0-9]{0,4}[dh]$'"},
	"size of the archive":               {"archive: {retentionBytes: 2G}", "at '/archive/retentionBytes': '2G' does not match pattern"},
	"key of another type":               {"archive: {omittedKeys: ['secret:a']}", "at '/archive/omittedKeys/0': 'secret:a' does not match pattern"},
	"two variables in one":              {"archive: {allowedEnv: ['A,B']}", "at '/archive/allowedEnv/0': 'A,B' does not match pattern"},
	"file of three servers": {
		"{apiserver: {replicas: 3}, archive: {database: sqlite}}", "archive.database: is sqlite, which is a file beside the embedded store of one server: set archive.database to " +
			"the address of a PostgreSQL database, or store.type=embedded with apiserver.replicas=1",
	},
	"file beside an external store": {"{store: {type: external}, archive: {database: sqlite}}", "archive.database: is sqlite, which is a file beside the embedded store of one server"},
	"archive that fills the volume": {
		"archive: {database: sqlite, retentionBytes: 5121Mi}", "archive.retentionBytes: is 5121Mi, must be more than 0 and at most half of store.embedded.size, which is 10Gi, because " +
			"archive.database=sqlite is a file in the volume of the store, and a full volume stops the store: set a lower value",
	},
	"archive without a limit in the volume": {"archive: {database: sqlite, retentionBytes: '0'}", "archive.retentionBytes: is 0, must be more than 0"},
	"password in the address": {
		"archive: {database: 'postgres://u:p@h/d'}", "archive.database: must not have a password, which every reader of the pod would see: remove it, and put it into the key password of " +
			"the Secret in archive.passwordSecret",
	},
	"password among the parameters": {"archive: {database: 'postgres://u@h/d?sslmode=disable&password=p'}", "archive.database: must not have a password"},
	"Secret of a file": {
		"archive: {database: sqlite, passwordSecret: mine}", "archive.passwordSecret: is mine, and is for PostgreSQL only: set archive.database to the address of a PostgreSQL database, or remove it",
	},
	"variables of an archive that is off": {"archive: {allowedEnv: [A]}", "archive.allowedEnv: is set, but archive.database is none, and nothing is recorded: set archive.database, or remove it"},
	"keys of an archive that is off":      {"archive: {omittedKeys: ['env:A']}", "archive.omittedKeys: is set, but archive.database is none"},
	"flag of the archive": {
		"apiserver: {extraArgs: [--archive-database=sqlite]}", "apiserver.extraArgs: --archive-database belongs to the values of the archive: remove it, and set archive.database and what else is needed there",
	},
	"volume of the archive":   {"apiserver: {extraVolumes: [{name: archive, emptyDir: {}}]}", "apiserver.extraVolumes: the volume archive belongs to the chart"},
	"variable of the archive": {"apiserver: {extraEnv: [{name: ARCHIVE_DATABASE, value: a}]}", "apiserver.extraEnv: the variable ARCHIVE_DATABASE belongs to the chart"},
	"quota for fewer pods":    {"{store: {type: external}, quota: {pods: 2}}", "quota.pods: is 2, and both programs have 5 pods and one more each during an update: raise it to 7 or more"},
}

func TestRefused(t *testing.T) {
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := release{values: test.values}.texts(t)
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("the message must contain %q, is %v", test.message, err)
			}
		})
	}
}

// TestRefusedOverInstallation checks values that contradict what the cluster has.
func TestRefusedOverInstallation(t *testing.T) {
	cluster := answering(t, map[string]string{
		"/api/v1/namespaces/jobset-system/configmaps/jobset-apiserver-storage": `{"apiVersion":"v1","kind":"ConfigMap","data":{"storage":"embedded"}}`,
		"/apis/apps/v1/namespaces/jobset-system/statefulsets/jobset-apiserver": `{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"volumeClaimTemplates":[` +
			`{"metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"10Gi"}}}}]}}`,
	})
	for values, message := range map[string]string{
		"{}":                      "",
		"store: {type: external}": "store.type: is external, but this cluster's installation stores in embedded, and the sets are there: set store.type=embedded",
		"store: {embedded: {size: 20Gi}}": "store.embedded.size: is 20Gi, but the StatefulSet has 10Gi, which cannot be changed: resize the claim data-jobset-apiserver-0, " +
			"run kubectl -n jobset-system delete statefulset jobset-apiserver --cascade=orphan, and upgrade again",
	} {
		_, err := release{values: values, cluster: cluster}.texts(t)
		switch {
		case message == "" && err != nil:
			t.Errorf("%s: %v", values, err)
		case message != "" && (err == nil || !strings.Contains(err.Error(), message)):
			t.Errorf("%s: the message must contain %q, is %v", values, message, err)
		}
	}
}

// answering returns a cluster that has nothing but some objects, by their paths.
func answering(t *testing.T, objects map[string]string) *rest.Config {
	t.Helper()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, found := map[string]string{
			"/api/v1":                         `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get"]}]}`,
			"/apis/apiextensions.k8s.io/v1":   `{"kind":"APIResourceList","groupVersion":"apiextensions.k8s.io/v1","resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["get"]}]}`,
			"/apis/apiregistration.k8s.io/v1": `{"kind":"APIResourceList","groupVersion":"apiregistration.k8s.io/v1","resources":[{"name":"apiservices","kind":"APIService","verbs":["get"]}]}`,
			"/apis/apps/v1":                   `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"statefulsets","namespaced":true,"kind":"StatefulSet","verbs":["get"]}]}`,
		}[r.URL.Path]
		if !found {
			body, found = objects[r.URL.Path]
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
			body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(cluster.Close)
	return &rest.Config{Host: cluster.URL}
}

// TestRecordsOfTheStore checks that the chart has the ConfigMaps of the server without content, and leaves alone those
// that others have created.
func TestRecordsOfTheStore(t *testing.T) {
	const path = "/api/v1/namespaces/kube-system/configmaps/"
	foreign := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"uuid":"a"}}`
	owned := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"meta.helm.sh/release-name":"jobset"}},"data":{"uuid":"a"}}`
	for name, tc := range map[string]struct {
		objects map[string]string
		want    []string
	}{
		"none exists":                     {nil, []string{"jobset-apiserver-store", "jobset-apiserver-lost-owners"}},
		"a server has created one":        {map[string]string{path + "jobset-apiserver-store": foreign}, []string{"jobset-apiserver-lost-owners"}},
		"they are those of this release":  {map[string]string{path + "jobset-apiserver-store": owned, path + "jobset-apiserver-lost-owners": owned}, []string{"jobset-apiserver-store", "jobset-apiserver-lost-owners"}},
		"they are those of other sources": {map[string]string{path + "jobset-apiserver-store": foreign, path + "jobset-apiserver-lost-owners": foreign}, nil},
	} {
		texts, err := release{values: "{}", cluster: answering(t, tc.objects)}.texts(t)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, document := range strings.Split(texts["jobset-apiserver/templates/witness.yaml"], "\n---\n") {
			var cm struct {
				Metadata   struct{ Name string }
				Data       map[string]string
				BinaryData map[string]string
			}
			if err := yaml.Unmarshal([]byte(document), &cm); err != nil {
				t.Fatal(err)
			}
			if cm.Data != nil || cm.BinaryData != nil {
				t.Errorf("%s: %s has content: an upgrade would replace that of the server", name, cm.Metadata.Name)
			}
			if cm.Metadata.Name != "" {
				got = append(got, cm.Metadata.Name)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: the chart has %q, want %q", name, got, tc.want)
		}
	}
}
