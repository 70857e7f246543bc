// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// halves are two servers on one etcd, each of which may be of another version, and a controller.
type halves struct {
	*upgraded
	servers    *replicas.Set
	controller *framework.Process
}

// startHalves starts all of them with the earlier programs.
func startHalves(t *testing.T) *halves {
	t.Helper()
	h := &halves{upgraded: newCluster(t, ".cluster-upgrade-halves", "CLUSTER_COMPONENTS=none")}
	if err := errors.Join(h.Script("up"), h.connect()); err != nil {
		t.Fatal(err)
	}
	if err := h.Script("kubectl", "apply", "--server-side", "-k", filepath.Join(h.Root, "artifacts", "base", "rbac")); err != nil {
		t.Fatal(err)
	}
	for account, name := range map[string]string{"jobset-apiserver": "apiserver", "jobset-controller-manager": "controller"} {
		if err := h.WriteKubeconfig(t.Context(), account, h.file(name+".kubeconfig")); err != nil {
			t.Fatal(err)
		}
	}
	binaries, err := localcluster.TestBinaries(h.Root)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := etcdcluster.Start(t.Context(), filepath.Join(binaries, "etcd"), h.file("members"), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	h.servers, err = replicas.Start(t.Context(), replicas.Settings{
		Binary: filepath.Join(*from, "jobset-apiserver"), Kubeconfig: h.file("apiserver.kubeconfig"), Dir: h.file("logs"),
		Flags: append(etcd.Flags(), gates, "--shutdown-delay-duration=2s"), Readiness: replicas.Quick,
	}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.servers.Close)
	if err := framework.Register(t.Context(), h.Kube, h.dynamic, h.servers.Port, h.servers.CA); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h.controller != nil {
			h.controller.Kill()
		}
	})
	h.control(t, *from)
	return h
}

func (h *halves) file(name string) string { return filepath.Join(h.Dir, name) }

// control replaces the controller.
func (h *halves) control(t *testing.T, programs string) {
	t.Helper()
	if h.controller != nil {
		if err := h.controller.Terminate(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	h.controller, err = framework.StartProcess(h.file("logs/jobset-controller.log"), filepath.Join(programs, "jobset-controller"),
		"--kubeconfig="+h.file("controller.kubeconfig"), "--leader-elect-resource-namespace=jobset-system", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", gates, "--v=2")
	if err != nil {
		t.Fatal(err)
	}
}

// serve replaces one of the servers.
func (h *halves) serve(t *testing.T, index int, programs string) {
	t.Helper()
	if err := h.servers.Replace(t.Context(), index, filepath.Join(programs, "jobset-apiserver")); err != nil {
		t.Fatal(err)
	}
}

// TestOrders replaces programs under running sets one after another, in every order, and has servers of both versions side by side on
// one store: each reads what the other has written, and writes it.
func TestOrders(t *testing.T) {
	h := startHalves(t)
	h.begin(t, numberOfSets(t))
	before := h.state(t)
	server := func(index int, programs string) func() { return func() { h.serve(t, index, programs) } }
	controller := func(programs string) func() { return func() { h.control(t, programs) } }
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"servers first: one server is later", server(0, *to)},
		{"servers first: both servers are later", server(1, *to)},
		{"servers first: the controller is later too", controller(*to)},
		{"back, controller first: the controller is earlier", controller(*from)},
		{"back, controller first: one server is earlier", server(1, *from)},
		{"back, controller first: all are earlier", server(0, *from)},
		{"controller first: the controller is later", controller(*to)},
		{"controller first: one server is later", server(1, *to)},
		{"controller first: all are later", server(0, *to)},
		{"back, servers first: one server is earlier", server(0, *from)},
		{"back, servers first: both servers are earlier", server(1, *from)},
		{"back, servers first: all are earlier", controller(*from)},
	} {
		step.do()
		h.unchanged(t, step.what, before)
		h.sharedStore(t)
	}
	h.complete(t)
}

// direct returns a client of one server.
func (h *halves) direct(t *testing.T, server *replicas.Server) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(h.REST)
	config.Host = "https://" + server.Address()
	config.CAData, config.CAFile = h.servers.CA, ""
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sharedStore writes to all objects with each server, and reads them with the other one, to which they are the same.
func (h *halves) sharedStore(t *testing.T) {
	t.Helper()
	const key = "example.com/written-by"
	for i, writer := range h.servers.Servers {
		reader := h.servers.Servers[1-i]
		write, read := h.direct(t, writer), h.direct(t, reader)
		for _, k := range kinds {
			// A few of each are as good as all, and leave the time to the watching.
			for n := range 3 {
				name := k.object(t, n).GetName()
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, writer.Name)
				wrote, err := write.Resource(k.GroupVersionResource).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
				if n > 0 && err != nil {
					break // there are fewer of this kind
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := read.Resource(k.GroupVersionResource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got.GetAnnotations()[key] != writer.Name {
					t.Errorf("%s reads %s %s without what %s has written", reader.Name, k.Resource, name, writer.Name)
				}
				if diff := cmp.Diff(comparable(t, wrote), comparable(t, got)); diff != "" {
					t.Errorf("%s %s (-%s +%s):\n%s", k.Resource, name, writer.Name, reader.Name, diff)
				}
			}
		}
	}
}

// comparable is the spec and the status without fields that have no value: whether such a field is written out may differ.
func comparable(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	data, err := json.Marshal(map[string]any{"spec": object.Object["spec"], "status": object.Object["status"]})
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	pruned, _ := prune(out).(map[string]any)
	return pruned
}

func prune(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field = prune(field); field == nil {
				delete(value, key)
			} else {
				value[key] = field
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = prune(value[i])
		}
		if len(value) == 0 {
			return nil
		}
	case float64:
		if value == 0 {
			return nil
		}
	case string:
		if value == "" {
			return nil
		}
	case bool:
		if !value {
			return nil
		}
	}
	return value
}
