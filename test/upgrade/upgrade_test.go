// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade replaces the programs of a cluster in which sets run with those of another version. hack/upgrade.sh builds both and
// runs it; it is not one of the suites, because it needs an earlier commit.
package upgrade

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var (
	from = flag.String("from", "", "directory with the earlier programs")
	to   = flag.String("to", "", "directory with the later programs")
)

const (
	// setsVariable is how many of our objects there are, of all kinds together.
	setsVariable = "JOBSET_UPGRADE_SETS"
	fewSets      = 20
	// gates are on in both versions, so that all kinds are served.
	gates = "--feature-gates=DisaggregatedSet=true"
)

// watched is how long nothing may change after a replacement. The garbage collector acts within 20 s, and a resync of the
// controller takes less. A short run looks for the time that the first round of the new controller takes.
func watched() time.Duration {
	if os.Getenv(setsVariable) == "" {
		return 10 * time.Second
	}
	return 45 * time.Second
}

func numberOfSets(t *testing.T) int {
	t.Helper()
	value := os.Getenv(setsVariable)
	if value == "" {
		return fewSets
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < fewSets {
		t.Fatalf("%s must be a number of at least %d, and is %q", setsVariable, fewSets, value)
	}
	return n
}

func TestMain(m *testing.M) {
	flag.Parse()
	suite.Main("upgrade", func() (int, error) {
		if *from == "" || *to == "" {
			return 0, fmt.Errorf("-from and -to must name directories with jobset-apiserver and jobset-controller: use hack/upgrade.sh")
		}
		return m.Run(), nil
	})
}

// upgraded is a cluster whose programs are replaced.
type upgraded struct {
	*localcluster.Cluster
	*framework.Clients
	dynamic dynamic.Interface
}

// connect makes the clients.
func (u *upgraded) connect() error {
	config, err := u.Config()
	if err != nil {
		return err
	}
	if u.Clients, err = framework.NewClients(config); err != nil {
		return err
	}
	u.dynamic, err = dynamic.NewForConfig(config)
	return err
}

// newCluster makes the directory of a cluster that does not run.
func newCluster(t *testing.T, name string, env ...string) *upgraded {
	t.Helper()
	cluster, err := localcluster.New(name, "", env...)
	if err != nil {
		t.Fatal(err)
	}
	u := &upgraded{Cluster: cluster}
	if err := u.Stop(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	return u
}

// up runs the programs of a directory instead of those that run.
func (u *upgraded) up(t *testing.T, programs string) {
	t.Helper()
	u.Env = []string{"CLUSTER_BIN=" + programs, "CLUSTER_APISERVER_ARGS=" + localcluster.ShortShutdown + " " + gates, "CLUSTER_CONTROLLER_ARGS=" + gates}
	if err := u.Script("up"); err != nil {
		t.Fatal(err)
	}
}

// registerRoles registers the API of DisaggregatedSets as the other ones are, and gives the controller its permissions for them.
func (u *upgraded) registerRoles(t *testing.T) {
	t.Helper()
	if err := u.Script("kubectl", "apply", "-f", filepath.Join(u.Root, "artifacts", "components", "disaggregatedset", "rbac.yaml")); err != nil {
		t.Fatal(err)
	}
	services := u.dynamic.Resource(apiservice.Resource)
	service, err := services.Get(t.Context(), apiservice.JobSets, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group := disaggregatedSets.GroupVersion()
	registered := &unstructured.Unstructured{Object: map[string]any{"spec": service.Object["spec"]}}
	registered.SetGroupVersionKind(service.GroupVersionKind())
	registered.SetName(apiservice.Name(group))
	err = errors.Join(unstructured.SetNestedField(registered.Object, group.Group, "spec", "group"),
		unstructured.SetNestedField(registered.Object, group.Version, "spec", "version"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := services.Create(t.Context(), registered, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade replaces both programs under running sets by later ones at once, and these by the earlier ones again, with the store
// in the server itself.
func TestUpgrade(t *testing.T) {
	u := newCluster(t, ".cluster-upgrade")
	u.up(t, *from)
	if err := u.connect(); err != nil {
		t.Fatal(err)
	}
	u.begin(t, fewSets)
	before := u.state(t)
	for _, directory := range []string{*to, *from, *to} {
		u.up(t, directory)
		u.unchanged(t, directory, before)
	}
	u.complete(t)
}
