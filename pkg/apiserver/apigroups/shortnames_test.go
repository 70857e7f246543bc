// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apigroups

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// wellKnown are the short names of kinds of Kubernetes and of products that run beside this one. If two kinds have a short name in
// common, the kind of the API group that discovery lists first gets the commands for the other one: `kubectl delete sj x` deleted a
// SequentialJob in place of a ScaledJob of KEDA.
var wellKnown = map[string][]string{
	"Kubernetes": {
		"cj", "cm", "cr", "crd", "crds", "cs", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "limits", "netpol", "no", "ns", "pc", "pdb", "po", "pv", "pvc",
		"quota", "rc", "rs", "sa", "sc", "sts", "svc",
	},
	"snapshots of volumes":    {"vgs", "vgsc", "vgsclass", "vs", "vsc", "vsclass"},
	"the autoscaler of pods":  {"vpa", "vpacheckpoint"},
	"KEDA":                    {"cta", "clustertriggerauth", "sj", "so", "ta", "triggerauth"},
	"Kueue":                   {"cq", "flavor", "flavors", "lq", "queue", "queues", "rf", "wl"},
	"Volcano":                 {"jf", "jt", "pg", "podgroup-v1beta1", "q", "queue-v1beta1", "vcjob", "vj"},
	"cert-manager":            {"cert", "certs"},
	"Argo":                    {"app", "apps", "appproj", "appset", "cronwf", "cwft", "eb", "es", "ro", "wf", "wftmpl"},
	"Flux":                    {"gitrepo", "hc", "helmrepo", "hr", "ks", "ocirepo"},
	"Istio and the Gateway":   {"dr", "gc", "gtw", "gw", "se", "vs", "we", "wg"},
	"Prometheus":              {"amcfg", "pmon", "prb", "prom", "promrule", "ruler", "scfg", "smon"},
	"Knative":                 {"kpa", "ksvc", "rev", "rt", "sks"},
	"Tekton":                  {"pr", "prs", "tr", "trs"},
	"Cilium":                  {"ccnp", "cep", "ciliumid", "cn", "cnp"},
	"Kubeflow, KServe, Spark": {"isvc", "scheduledsparkapp", "sparkapp"},
	"Crossplane":              {"xrd", "xrds"},
	"Cluster API":             {"cl", "ma", "md", "mhc", "mp", "ms"},
}

// shortNamesOfAPI returns the short names of all resources that the server serves.
func shortNamesOfAPI(t *testing.T) map[string][]string {
	t.Helper()
	server := etcdtest.StartServer(t)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, group := range All() {
		group.Install(scheme)
	}
	gates, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	codecs, names := serializer.NewCodecFactory(scheme), map[string][]string{}
	for _, group := range All() {
		config := storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(group.StorageVersion))
		config.Transport.ServerList = []string{server.Endpoint()}
		storages, err := group.Storage(provider.Host{Getter: stores{config}, Scheme: scheme, Gates: gates, Now: time.Now, Recorder: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		for resource, storage := range storages[group.StorageVersion.Version] {
			if short, has := storage.(rest.ShortNamesProvider); has {
				names[resource+"."+group.StorageVersion.Group] = short.ShortNames()
			}
		}
	}
	return names
}

func TestShortNamesBelongToNoOtherProduct(t *testing.T) {
	all := shortNamesOfAPI(t)
	if !slices.Equal(all["jobsets.jobset.x-k8s.io"], []string{"js"}) {
		t.Errorf("short names of the API: %v", all)
	}
	for _, kind := range cli.Kinds {
		all["the plugin's "+kind.Title] = kind.Names
	}
	for of, names := range all {
		for product, taken := range wellKnown {
			for _, name := range names {
				if slices.Contains(taken, name) {
					t.Errorf("%s of %s is a short name of %s", name, of, product)
				}
			}
		}
	}
}

// TestPluginTakesTheShortNamesOfTheAPI: what `kubectl get` takes, `kubectl jobset` takes as well.
func TestPluginTakesTheShortNamesOfTheAPI(t *testing.T) {
	served := shortNamesOfAPI(t)
	for _, kind := range cli.Kinds {
		for _, name := range served[kind.Resource().GroupResource().String()] {
			if !kind.Accepts(name) {
				t.Errorf("the plugin does not take %s for a %s", name, kind.Title)
			}
		}
	}
}
